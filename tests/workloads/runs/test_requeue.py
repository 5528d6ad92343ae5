"""A run whose units the cluster takes away is queued again; it has not ended, whatever its exit code."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Event, User
from catalog.models import GpuClass
from cluster.models import AppliedObject
from devcluster.client.kube import Api
from portal.core.due import TryLater
from tenants.models import Namespace, Tenant
from tests.support.cluster.worker import Worker
from tests.support.rows import running
from tests.support.waiting import wait_until
from tests.workloads.cases.run_state import is_ready, named, run_of, shown
from workloads.forecast.queries import run_units
from workloads.launch import actions
from workloads.launch.options import Options
from workloads.launch.types import LaunchSpec
from workloads.models import Run, Workload
from workloads.runs import reconcile, requeue
from workloads.status import outcome
from workloads.status.types import Phase

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("provisioned", "watcher")]
QUEUES = "kueue.x-k8s.io/v1beta2/clusterqueues"


def test_a_notebook_whose_units_are_taken_away_is_queued_again_not_over(
    granted: Tenant, namespace_a: Namespace, notebook: LaunchSpec, by_alice: Actor, worker: Worker, admin: Api
) -> None:
    """JupyterLab exits with 0 on SIGTERM: this does not mean that a user shut it down. The time limit counts from the
    new start, and the run is stopped when it is reached.
    """
    actions.launch("team-a", replace(notebook, options=Options(run_hours=8)), by=by_alice)
    worker(lambda: is_ready("one") and run_of("one").ends_at)
    first = run_of("one")
    assert first.started_at is not None
    assert first.ends_at == first.started_at + timedelta(hours=8)

    admin.patch(QUEUES, namespace_a.name, {"spec": {"stopPolicy": "HoldAndDrain"}})
    wait_until(lambda: named(admin, "v1/pods", namespace_a.name) == [], within_s=60)
    worker(lambda: shown("one").status.phase is Phase.QUEUED and run_of("one").ends_at is None)
    worker(lambda: run_of("one").put_back_at)
    assert run_of("one").ended_at is None
    one = notebook.gpu_class
    assert run_units(namespace_a) == ({one: 0}, {one: 1}), "its units are free again"

    admin.patch(QUEUES, namespace_a.name, {"spec": {"stopPolicy": "None"}})
    worker(lambda: shown("one").status.phase is Phase.READY and run_of("one").ends_at, within_s=60)
    assert named(admin, "batch/v1/jobs", namespace_a.name) == ["one-1"]
    worker(lambda: run_of("one").put_back_at is None)
    assert run_units(namespace_a) == ({one: 1}, {one: 0})
    again = run_of("one").ends_at
    assert again is not None
    assert again > first.ends_at

    Run.objects.update(ends_at=timezone.now())
    Workload.objects.update(due_at=timezone.now())
    worker(lambda: run_of("one").ended_at)
    assert (run_of("one").outcome, run_of("one").reason) == ("stopped", "run_time_over")
    assert "It reached its time limit of 8 h at" in run_of("one").message
    worker(lambda: named(admin, "v1/pods", namespace_a.name) == [])


def evict(admin: Api, namespace: str) -> None:
    """Evicts the pod as `kubectl drain` does."""
    for name in named(admin, "v1/pods", namespace):
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": namespace}}
        admin.request("POST", f"/api/v1/namespaces/{namespace}/pods/{name}/eviction", body)


def test_a_notebook_whose_pod_is_taken_off_its_node_was_not_shut_down_by_anybody_and_comes_back(
    granted: Tenant, namespace_a: Namespace, notebook: LaunchSpec, by_alice: Actor, worker: Worker, admin: Api
) -> None:
    """Its Job is complete, because JupyterLab exited with 0. The portal creates another run of the same spec."""
    actions.launch("team-a", notebook, by=by_alice)
    worker(lambda: is_ready("one"))

    evict(admin, namespace_a.name)
    worker(lambda: run_of("one").number == 2 and is_ready("one"), within_s=90)

    first = Run.objects.get(number=1)
    assert (first.outcome, first.reason) == ("stopped", "pod_removed")
    assert first.message.endswith("It restarts automatically.")
    again = run_of("one").spec
    assert again == {**first.spec, "number": 2, "identity": again["identity"]}
    assert again["identity"] != first.spec["identity"]
    back = Event.objects.get(verb="workload.brought_back").after
    assert (back["run"], back["reason"], back["rule"], back["times"]) == (2, "pod_removed", "", 1)
    assert named(admin, "batch/v1/jobs", namespace_a.name) == ["one-2"]


def test_what_a_killed_worker_left_of_the_evicted_run_does_not_stay_until_the_next_one_ends(
    granted: Tenant, namespace_a: Namespace, notebook: LaunchSpec, by_alice: Actor, worker: Worker, admin: Api,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    actions.launch("team-a", notebook, by=by_alice)
    worker(lambda: is_ready("one"))

    def dies(_work: object) -> None:
        raise TryLater("killed", "The next run was requested, and nothing of this one was deleted.")

    with monkeypatch.context() as patched:
        patched.setattr(reconcile, "_tidy", dies)
        evict(admin, namespace_a.name)
        worker(lambda: run_of("one").number == 2)

    worker(lambda: run_of("one").number == 2 and is_ready("one"), within_s=90)
    assert named(admin, "batch/v1/jobs", namespace_a.name) == ["one-2"]
    assert {row.name for row in AppliedObject.objects.filter(kind__in=reconcile.RUN_KINDS)} == {"one-2"}


def test_what_is_taken_away_again_and_again_stays_ended(
    granted: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    found = running.workload(namespace_a, a100, by=alice)
    run = found.runs.get()
    for number in (2, 3, 4):
        assert requeue.may_requeue(run, "pod_removed")
        Run.objects.filter(pk=run.pk).update(ended_at=timezone.now(), outcome="stopped", reason="pod_removed")
        with transaction.atomic():
            run = requeue.requeue(run, outcome.RunOutcome("stopped", "pod_removed", outcome.POD_REMOVED))
        assert run.number == number
    assert not requeue.may_requeue(run, "pod_removed")
    Run.objects.filter(number=2).update(reason="idle")
    assert requeue.may_requeue(run, "pod_removed"), "only what was taken away three times in a row"


@pytest.mark.parametrize("reason", ["suspended", "retiring"])
def test_what_may_not_start_does_not_come_back(
    granted: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, reason: str
) -> None:
    run = running.workload(namespace_a, a100, by=alice).runs.get()
    assert requeue.may_requeue(run, "pod_removed")
    if reason == "suspended":
        Namespace.objects.update(wanted="suspended")
    else:
        GpuClass.objects.update(life_cycle="retiring")
    assert not requeue.may_requeue(run, "pod_removed")
