"""Real Kueue holds work back; the form of the first step on its page starts it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from accounts.core.actor import Actor
from catalog.models import GpuClass, Pool
from cluster.client.kube import Kube
from portal.core.due import Deadline
from tenants.models import Grant, Namespace, Tenant
from tenants.provisioning import reconcile, steps
from tests.support.cluster.worker import Worker, provision
from tests.support.rows import make
from tests.support.waiting import wait_until
from tests.workloads.cases.live import is_open, told
from tests.workloads.cases.run_state import shown
from tests.workloads.cases.situations import as_written
from tests.workloads.cases.situations_queue import IN_QUEUE
from tests.workloads.cases.steps_followed import by_hand, follow, help_of
from tests.workloads.situations.test_problems_live import cpu
from tests.workloads.situations.test_problems_shared_live import own
from workloads.advice.shown import AdviceView
from workloads.launch import actions
from workloads.launch.options import Options
from workloads.launch.types import LaunchSpec
from workloads.models import NotebookWatch, Workload

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("watcher")]

# Fixtures of other modules, by name.
__all__ = ["by_hand", "cpu", "own"]

RUNNING = ("running", "running")


@pytest.fixture
def asked(own: GpuClass, job: LaunchSpec) -> LaunchSpec:
    return replace(job, gpu_class=own.slug, options=Options(checkpoints=True))


def until_waits(worker: Worker, by: Actor, name: str, verb: str, *, reason: str) -> AdviceView:
    """Waits until the first step of the page is this one, for this reason."""

    def is_so() -> bool:
        if told().get(name, ("", ""))[1] != reason:
            return False
        return help_of(by, name).steps[0].verb == verb

    worker(is_so)
    return help_of(by, name)


def runs(name: str) -> Callable[[], bool]:
    return lambda: told().get(name) == RUNNING


def test_fewer_units_another_class_and_stopping_an_idle_notebook(
    own: GpuClass, a100: GpuClass, asked: LaunchSpec, team_a: Tenant, namespace_a: Namespace, kube_worker: Kube,
    clean_cluster: None, by_alice: Actor, by_hand: Client, worker: Worker,
) -> None:  # fmt: skip
    """Four GPUs are granted, all on the one node that has four; first three of them are in use, then all four."""
    GpuClass.objects.filter(pk=own.pk).update(borrowing_limit=0)
    make.grant(team_a, own, units=4)
    provision(namespace_a, kube_worker)
    notebook = replace(asked, name="idle", kind="notebook", image="minimal", command=(), units=3, options=Options())
    actions.launch("team-a", notebook, by=by_alice)
    worker(lambda: told().get("idle", ("", ""))[0] in ("starting", "ready", "running"))

    # The run requests two units, one is left.
    actions.launch("team-a", replace(asked, name="fewer", units=2), by=by_alice)
    found = until_waits(worker, by_alice, "fewer", "fewer_units", reason="waiting_for_quota")
    assert found.steps[0].label == "Request 1 GPU instead of 2"
    as_written(IN_QUEUE["waiting for quota"], shown("fewer").status, found)
    follow(by_hand, found.steps[0].href)
    worker(runs("fewer"))

    # Nothing is left: an unused notebook holds enough units.
    actions.launch("team-a", replace(asked, name="waits", units=3), by=by_alice)
    until_waits(worker, by_alice, "waits", "wait", reason="waiting_for_quota")
    idle = Workload.objects.get(name="idle").runs.get()
    NotebookWatch.objects.update_or_create(
        run=idle, defaults={"idle_since": timezone.now() - timedelta(hours=1), "due_at": None}
    )
    found = until_waits(worker, by_alice, "waits", "stop_other", reason="waiting_for_quota")
    assert found.steps[0].href == "/teams/team-a/workloads/idle"
    assert by_hand.post(f"{found.steps[0].href}/stop").status_code == 302
    worker(runs("waits"))

    # Another class that the team holds and that supports its image.
    make.grant(team_a, a100, units=4)
    reconcile.reconcile_pool(Pool.objects.get(), Deadline(), kube=kube_worker)
    namespace_a.refresh_from_db()
    steps.work_on_namespace(namespace_a, Deadline(), kube=kube_worker)
    wait_until(lambda: is_open(namespace_a, kube_worker))
    actions.launch("team-a", replace(asked, name="elsewhere"), by=by_alice)
    found = until_waits(worker, by_alice, "elsewhere", "other_class", reason="waiting_for_quota")
    follow(by_hand, found.steps[0].href)
    worker(runs("elsewhere"))
    assert Workload.objects.get(name="elsewhere").gpu_class == a100


def test_what_can_never_start_any_more_is_asked_for_smaller(
    own: GpuClass, asked: LaunchSpec, team_a: Tenant, namespace_a: Namespace, kube_worker: Kube, clean_cluster: None,
    by_alice: Actor, by_hand: Client, worker: Worker,
) -> None:  # fmt: skip
    """The run was queued when its grant became smaller; beside it, a run that only waits."""
    GpuClass.objects.filter(pk=own.pk).update(borrowing_limit=0)
    make.grant(team_a, own, units=2)
    make.grant(team_a, own, units=1, kind=Grant.Kind.BOOST)
    provision(namespace_a, kube_worker)
    actions.launch("team-a", replace(asked, name="holds", units=3), by=by_alice)
    worker(runs("holds"))
    actions.launch("team-a", replace(asked, name="large", units=3), by=by_alice)
    found = until_waits(worker, by_alice, "large", "wait", reason="waiting_for_quota")
    assert found.verdict == "not_yet"

    Grant.objects.filter(kind=Grant.Kind.BOOST).delete()
    wait_until(lambda: is_open(namespace_a, kube_worker))
    worker(lambda: told()["large"][1] == "exceeds_maximum")
    actions.stop("team-a", "holds", by=by_alice)
    found = until_waits(worker, by_alice, "large", "fewer_units", reason="exceeds_maximum")
    assert found.steps[0].label == "Request 2 GPUs instead of 3"
    as_written(IN_QUEUE["exceeds the maximum"], shown("large").status, found)
    follow(by_hand, found.steps[0].href)
    worker(runs("large"))
