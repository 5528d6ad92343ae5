"""A worker that looks when a removed pod is replaced already records the interruption as if it had looked in time."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from accounts.models import Delivery, Event, User
from catalog.models import GpuClass
from cluster.models import Cluster, MirrorJob, MirrorPod, MirrorWorkload, PodRemoval
from cluster.reads import queries as mirror
from portal.core.due import owner_label
from tenants.models import Namespace, Tenant
from tests.support.rows import make, mirrored, running
from tests.support.rows.interruptions import asked, condition, queue_says, seen
from workloads.core import queries as core_queries
from workloads.core.observation import Observation
from workloads.models import Run
from workloads.runs import interruption_notices, recording
from workloads.runs.queries import active_run

pytestmark = pytest.mark.django_db
LOW = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 52Mi. "
SHUTDOWN = "Pod was terminated in response to imminent node shutdown."
FILES = 'Usage of EmptyDir volume "shared-memory" exceeds the limit "2Gi". '


@pytest.fixture
def run(team_a: Tenant, namespace_a: Namespace, cluster: Cluster, a100: GpuClass, alice: User) -> Run:
    """A job whose pod was replaced: the other one runs."""
    mirrored.hardware_seen(cluster)
    make.grant(team_a, a100, units=4)
    found = asked(namespace_a, a100, alice)
    queue_says(found, condition("QuotaReserved", "True"), condition("Admitted", "True"), preemptions=0)
    MirrorPod.objects.all().delete()
    running.pod_of(found.workload, uid="another")
    return found


def gone(
    run: Run, uid: str, *, ago_s: int = 60, why: str = "EvictionByEvictionAPI", phase: str = "Failed", ran: bool = True,
    reason: str = "", message: str = "",
) -> datetime:  # fmt: skip
    at = timezone.now().replace(microsecond=0) - timedelta(seconds=ago_s)
    workload = run.workload
    PodRemoval.objects.create(
        cluster_id=workload.namespace.cluster_id, namespace=workload.namespace.name, uid=uid,
        owner=owner_label(workload), run=core_queries.job_name(workload, run), node="a100-1", phase=phase,
        reason=reason, message=message, disruption=why, disruption_message=message, disrupted_at=at,
        ran_since=at - timedelta(minutes=5) if ran else None,
    )  # fmt: skip
    return at


def look(run: Run) -> Observation:
    workload = run.workload
    mine = {"owner": owner_label(workload), "namespace": workload.namespace.name}
    name = core_queries.job_name(workload, run)
    return replace(seen(run), removed=tuple(mirror.removed_pods(workload.namespace.cluster_id, **mine, run=name)))


def follow(run: Run) -> bool:
    return interruption_notices.record_preemptions(Run.objects.get(pk=run.pk), look(run))


def told() -> list[tuple[str, int]]:
    events = Event.objects.filter(verb="workload.interrupted").order_by("pk")
    return [(one.after["reason"], one.after["times"]) for one in events]


@pytest.mark.parametrize(
    ("removal", "cause"),
    [
        ({}, "drained"),
        ({"why": "DeletionByTaintManager"}, "drained"),
        ({"why": "PreemptionByScheduler"}, "preempted_on_node"),
        ({"why": "DeletionByPodGC", "message": "PodGC: node no longer exists"}, "node_lost"),
        ({"why": "TerminationByKubelet", "reason": "Evicted", "message": LOW}, "evicted"),
        ({"why": "TerminationByKubelet", "reason": "Evicted", "message": FILES}, "too_many_files"),
        ({"why": "TerminationByKubelet", "reason": "Terminated", "message": SHUTDOWN}, "node_shutdown"),
        ({"why": "SomethingNew"}, "disrupted"),
        ({"phase": "Running"}, "drained"),  # it went while nobody watched
    ],
)
def test_a_pod_that_is_gone_is_told_once_with_its_cause_and_time(
    run: Run, alice: User, removal: dict[str, str], cause: str
) -> None:
    at = gone(run, "first", **removal)  # type: ignore[arg-type]
    stale = Run.objects.get(pk=run.pk)
    assert follow(run)
    assert not follow(run)
    assert not interruption_notices.record_preemptions(stale, look(run)), "another worker told it meanwhile"
    assert told() == [(cause, 1)]
    first, last = Event.objects.order_by("pk")
    assert datetime.fromisoformat(first.after["at"]) == at
    assert last.verb == "workload.resumed", "the other pod runs already"
    mail = Delivery.objects.get()
    assert (mail.user, mail.subject) == (alice, "train of Team A was interrupted")


def test_several_are_told_in_the_order_in_which_they_happened(run: Run) -> None:
    """Of a gang, or of one worker that was removed again and again."""
    gone(run, "second", ago_s=60, why="PreemptionByScheduler")
    gone(run, "third", ago_s=30)
    gone(run, "first", ago_s=90, why="TerminationByKubelet", reason="Evicted", message=LOW)
    assert follow(run)
    assert told() == [("evicted", 1), ("preempted_on_node", 2), ("drained", 3)]
    assert Delivery.objects.count() == 3
    gone(run, "fourth", ago_s=10)
    assert follow(run)
    assert told()[-1] == ("drained", 4)


def test_one_that_was_recorded_before_it_was_gone_is_not_told_again(run: Run) -> None:
    row = running.pod_of(run.workload, uid="first", phase="Failed")
    row.record |= {"conditions": [condition("DisruptionTarget", "True", reason="EvictionByEvictionAPI")]}
    row.save()
    assert follow(run)
    gone(run, "first")
    follow(run)
    row.delete()
    follow(run)
    assert told() == [("drained", 1)]
    assert Delivery.objects.count() == 1


@pytest.mark.parametrize("removal", [{"ran": False}, {"phase": "Succeeded"}])
def test_what_is_no_interruption(run: Run, removal: dict[str, bool]) -> None:
    gone(run, "one", **removal)  # type: ignore[arg-type]
    assert not follow(run)


def test_evictions_by_the_queue_between_two_looks_are_all_told(run: Run) -> None:
    queued = MirrorWorkload.objects.get(job_uid=f"job-{run.workload_id}")
    queued.record = {**queued.record, "evictions": {"PodsReadyTimeout": 2}}
    queued.save()
    for _ in range(3):
        follow(run)
    assert told() == [("pods_not_ready", 1), ("pods_not_ready", 2)]


def test_a_run_that_completed_meanwhile_has_it_in_its_history_and_nobody_is_told_late(run: Run) -> None:
    gone(run, "one")
    gone(run, "unseen", phase="Running", ago_s=30)
    job = MirrorJob.objects.get(uid=f"job-{run.workload_id}")
    job.record = {**job.record, "conditions": [condition("Complete", "True")]}
    job.save()
    follow(run)
    assert told() == [("drained", 1)], "of the other it is not known whether it completed"
    assert not Delivery.objects.exists()


def test_the_start_of_the_run_is_that_of_its_first_pod(run: Run) -> None:
    at = gone(run, "first", ago_s=60)
    Run.objects.filter(pk=run.pk).update(started_at=None, requested_at=at - timedelta(minutes=9))
    run.refresh_from_db()
    recording.record_state(active_run(run.workload), look(run))
    run.refresh_from_db()
    assert run.started_at == at - timedelta(minutes=5)
