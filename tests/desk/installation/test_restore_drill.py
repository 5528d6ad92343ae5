"""A short restore drill on the real cluster: changes after a backup, a lost database, and its restore, twice.

`run.py soak restore` does it with 200 changes.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from accounts.core.actor import Actor
from accounts.models import Event, User
from catalog.models import GpuClass
from cluster.client.kube import Kube
from cluster.models import AppliedObject
from portal.core.due import Deadline, TryLater
from tenants.models import Grant, Namespace, Tenant
from tenants.provisioning import steps
from tests.desk.installation.drill import Drill, drill, manage
from tests.support.cluster.worker import Worker
from tests.support.rows import make
from tests.support.waiting import wait_until
from tests.workloads.cases.run_state import is_running, named, run_of
from workloads.credentials import sealing
from workloads.launch import actions
from workloads.launch.types import LaunchSpec
from workloads.models import TeamSecret, Workload
from workloads.runs.objects.comparison import JobState, runs_without_job

__all__ = ["drill"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(420)]


def test_restored_rows_meet_a_cluster_that_has_moved_on(
    drill: Drill, granted: Tenant, namespace_a: Namespace, a100: GpuClass, kube_worker: Kube, job: LaunchSpec,
    alice: User, by_alice: Actor, worker: Worker,
    services: dict[str, Any],
) -> None:  # fmt: skip
    def launch(name: str) -> Workload:
        return actions.launch("team-a", replace(job, name=name), by=by_alice)

    def states() -> dict[str, JobState]:
        return {one.name: one.state for one in drill.compared().values()}

    def hard() -> dict[str, str]:
        """What the team may use, as the cluster enforces it."""
        found = drill.admin.get("v1/resourcequotas", "gpu-portal", namespace=namespace_a.name)
        return dict(found["spec"]["hard"])

    def follow() -> None:
        """What a worker does with the team's namespace."""
        with suppress(TryLater):
            steps.work_on_namespace(Namespace.objects.get(pk=namespace_a.pk), Deadline(), kube=kube_worker)

    TeamSecret.objects.create(namespace=namespace_a, created_by=alice, name="TOKEN", sealed=sealing.seal("a value"))
    launch("kept")
    launch("again")
    worker(lambda: is_running("kept") and is_running("again"))
    actions.stop("team-a", "again", by=by_alice)
    launch("gone")
    worker(lambda: run_of("again").ended_at and is_running("gone"))
    launch("asked")
    drill.back_up()
    quota = hard()
    kept = AppliedObject.objects.get(kind="Job", name="kept-1").uid

    actions.stop("team-a", "gone", by=by_alice)
    actions.start("team-a", "again", by=by_alice)
    make.grant(granted, a100, units=1, kind=Grant.Kind.BOOST)
    follow()
    assert hard() != quota
    lost = launch("new").pk
    sent = AppliedObject.objects.filter(kind="Job")
    worker(
        lambda: run_of("gone").ended_at and {"again-2", "new-1", "asked-1"} <= set(sent.values_list("name", flat=True))
    )

    drill.lose_and_restore()
    told = manage("compare", code=2)
    assert "The cluster is not known" in told
    drill.watch()
    first = states()
    assert first == {
        "kept-1": JobState.RECORDED,
        "asked-1": JobState.RECORDED,
        "again-2": JobState.UNRECORDED,
        "new-1": JobState.ORPHAN,
    }
    told = manage("compare", code=1)
    assert "4 Jobs in the cluster, 2 of them with their run." in told
    assert [(one.workload, one.was_sent) for one in runs_without_job(drill.cluster)] == [("gone", True)]

    # Whoever does not move the sequences gets a row with the key of a lost one: it never takes over that row's Job.
    assert launch("new").pk == lost
    worker(lambda: AppliedObject.objects.filter(name="new-1", result=AppliedObject.Result.FOREIGN).exists())
    assert states()["new-1"] is JobState.DUPLICATE
    assert AppliedObject.objects.get(kind="Job", name="kept-1").uid == kept

    drill.lose_and_restore()
    # Nobody sees it go.
    policies = named(drill.admin, "networking.k8s.io/v1/networkpolicies", namespace_a.name)
    drill.admin.delete("networking.k8s.io/v1/networkpolicies", policies[0], namespace=namespace_a.name)
    drill.watch()
    assert states() == first
    told = manage("compare", "--after-restore", code=1)
    assert f"workloads_workload: the next key is {lost + 1}; it was {lost}." in told
    assert "No object in the cluster names a row" in manage("compare", "--after-restore", code=1)
    assert launch("later").pk > lost

    follow()
    assert named(drill.admin, "networking.k8s.io/v1/networkpolicies", namespace_a.name) == policies

    identity = {"PORTAL_KUBECONFIG": services["kubeconfigs"]["worker"]}
    manage("compare", "--delete-job", f"{namespace_a.name}/kept-1", code=1, **identity)
    wanted = [f"{namespace_a.name}/{name}" for name in ("new-1", "again-2")]
    manage("compare", *(word for one in wanted for word in ("--delete-job", one)), **identity)
    events = Event.objects.filter(verb="cluster.job_deleted").order_by("pk")
    assert [one.before["job"] for one in events] == wanted
    manage("compare", "--stop", "team-a/asked", "--stop", "team-a/later")
    worker(lambda: run_of("gone").ended_at and is_running("kept"))
    assert (run_of("gone").outcome, run_of("kept").ended_at) == ("lost", None)
    worker(lambda: states() == {"kept-1": JobState.RECORDED})
    assert manage("compare").endswith("1 Jobs in the cluster, 1 of them with their run.\n")
    wait_until(lambda: follow() or hard() == quota, within_s=60, what="the quota of the backup, when nothing uses more")
    assert AppliedObject.objects.get(kind="Job", name="kept-1").uid == kept
    assert [sealing.unseal(bytes(one.sealed)) for one in TeamSecret.objects.all()] == ["a value"]
    assert "0 cannot be decrypted" in manage("keys")
