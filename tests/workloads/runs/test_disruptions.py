"""Interruptions that are no preemptions are recorded and announced once: removed pods, other evictions, a person."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import Delivery, Event, User
from catalog.models import GpuClass
from cluster.models import Cluster, MirrorJob, MirrorPod, MirrorWorkload
from tenants.models import Namespace, Tenant
from tests.support.rows import make, mirrored, running
from tests.support.rows.interruptions import asked, condition, follow, out, queue_says, seen
from workloads.core import workload_sql
from workloads.interruption import preemption
from workloads.models import Run, Workload
from workloads.runs import interruption_notices
from workloads.status import outcome
from workloads.status import queries as status_queries
from workloads.status.explain.endings import disruption
from workloads.status.workload_row import WorkloadRow

pytestmark = pytest.mark.django_db
LOW = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 52Mi. "


@pytest.fixture
def house(team_a: Tenant, cluster: Cluster, a100: GpuClass) -> Tenant:
    mirrored.hardware_seen(cluster)
    make.grant(team_a, a100, units=4)
    return team_a


@pytest.fixture
def run(house: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User) -> Run:
    """A job that runs."""
    found = asked(namespace_a, a100, alice)
    holding(found)
    return found


def holding(run: Run, *more: Any) -> None:
    queue_says(run, condition("QuotaReserved", "True"), condition("Admitted", "True"), *more, preemptions=0)


def evictions(run: Run, counts: dict[str, int], **more: Any) -> None:
    queued = MirrorWorkload.objects.get(job_uid=f"job-{run.workload_id}")
    queued.record = {**queued.record, "evictions": counts, **more}
    queued.save()


def removed(run: Run, *, uid: str, ran: bool = True, disruption: str = "TerminationByKubelet", **more: Any) -> None:
    """The pod of the run failed: its node or the cluster removed it."""
    MirrorPod.objects.all().delete()
    at = (timezone.now() - timedelta(seconds=20)).isoformat()
    row = running.pod_of(run.workload, uid=uid, phase="Failed")
    container = {**row.record["containers"][0], "ready": False, "state": "terminated", "reason": "Error"}
    container |= {"since": at if ran else None, "exit_code": 137, "ended_at": at}
    target = [condition("DisruptionTarget", "True", reason=disruption, message=LOW)] if disruption else []
    row.record = {**row.record, "conditions": target, "containers": [container], **more}
    row.save()


def told() -> list[tuple[str, str, int]]:
    return [(one.verb, one.after.get("reason", ""), one.after["times"]) for one in Event.objects.order_by("pk")]


def shown(run: Run) -> WorkloadRow:
    return status_queries.workload_rows(workload_sql.with_related(Workload.objects.filter(pk=run.workload_id)))[0]


def test_an_eviction_by_the_kubelet_is_one_event_and_one_mail(run: Run, alice: User) -> None:
    removed(run, uid="first", reason="Evicted", message=LOW)
    stale = Run.objects.get(pk=run.pk)
    assert follow(run)
    assert not follow(run), "it is the same one"
    assert not interruption_notices.record_preemptions(stale, seen(run)), "another worker told it meanwhile"
    assert told() == [("workload.interrupted", "evicted", 1)]
    mail = Delivery.objects.get()
    assert mail.user == alice
    assert mail.subject == "train of Team A was interrupted"
    assert "its node ran low on memory, disk space or another resource and evicted it" in mail.body
    assert "It restarts automatically" in mail.body
    last = shown(run).interrupted
    assert last is not None
    assert (last.cause, last.times) == ("evicted", 1)

    removed(run, uid="second", reason="Evicted", message=LOW)
    assert follow(run)
    assert [one[2] for one in told()] == [1, 2]
    out(run)
    assert follow(run)
    assert told()[-1][2] == 3


@pytest.mark.parametrize(
    ("disruption", "cause"),
    [
        ("EvictionByEvictionAPI", "drained"),
        ("DeletionByTaintManager", "drained"),
        ("PreemptionByScheduler", "preempted_on_node"),
        ("SomethingNew", "disrupted"),
    ],
)
def test_each_disruption_has_its_cause(run: Run, disruption: str, cause: str) -> None:
    removed(run, uid="one", disruption=disruption)
    assert follow(run)
    assert told() == [("workload.interrupted", cause, 1)]


def test_every_cause_has_words() -> None:
    assert disruption.UNKNOWN & preemption.CAUSES.keys()
    assert {preemption.eviction_cause(name) for name in ("PodsReadyTimeout", "Later")} <= preemption.CAUSES.keys()


def test_a_pod_that_never_ran_or_that_crashed_is_no_interruption(run: Run) -> None:
    removed(run, uid="one", ran=False)
    assert not follow(run)
    removed(run, uid="two", disruption="")
    assert not follow(run)
    assert told() == []


def test_a_run_that_ends_by_it_is_reported_as_ended(run: Run) -> None:
    removed(run, uid="one", reason="Evicted", message=LOW)
    Run.objects.filter(pk=run.pk).update(ended_at=timezone.now(), outcome="failed")
    assert not follow(run)


def test_pods_that_are_not_ready_in_time_are_told(run: Run) -> None:
    text = "Exceeded the PodsReady timeout team-a/train"
    queue_says(
        run,
        condition("QuotaReserved", "False", reason="Pending", message=text),
        condition("Admitted", "False"),
        condition("Evicted", "True", reason="PodsReadyTimeout", message=text),
        preemptions=0,
    )
    evictions(run, {"PodsReadyTimeout": 1})
    assert follow(run)
    assert not follow(run)
    assert told() == [("workload.interrupted", "pods_not_ready", 1)]
    assert "its pods were not ready within the time limit of the queue" in Delivery.objects.get().body
    evictions(run, {"PodsReadyTimeout": 2})
    assert follow(run)
    assert told()[-1] == ("workload.interrupted", "pods_not_ready", 2)


def deactivate(run: Run, reason: str = "Deactivated", by: str = "kubectl-patch") -> datetime:
    at = timezone.now().replace(microsecond=0)
    queue_says(
        run,
        condition("QuotaReserved", "False", reason="Pending", message="The workload is deactivated"),
        condition("Admitted", "False"),
        condition("Evicted", "True", reason=reason, message="The workload is deactivated", at=at),
        preemptions=0,
    )
    evictions(run, {reason: 1}, active=False, inactive_by=by, inactive_since=at.isoformat())
    return at


def test_what_a_person_deactivated_is_not_the_queue_systems_doing(run: Run) -> None:
    deactivate(run)
    assert follow(run)
    assert told() == [("workload.interrupted", "deactivated", 1)]
    mail = Delivery.objects.get()
    assert "deactivated in the cluster by kubectl-patch" in mail.body
    assert "restarts automatically" not in mail.body
    status = shown(run).status
    assert (status.phase, status.reason) == ("blocked", "deactivated")
    assert "deactivated in the cluster by kubectl-patch at" in status.sentence
    assert "Kueue deactivated" not in status.sentence
    assert status.explained is not None
    assert not status.explained.is_final, "it continues if the Workload is set to active"


def test_what_kueue_deactivated_is_its_doing(run: Run) -> None:
    deactivate(run, "DeactivatedDueToRequeuingLimitExceeded", by="kueue")
    assert follow(run)
    status = shown(run).status
    assert status.sentence == "Kueue deactivated it: it was requeued too often."
    assert told() == [("workload.interrupted", "deactivated", 1)]


def test_a_waiting_run_that_a_person_deactivates_is_told_too(
    house: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    run = asked(namespace_a, a100, alice)
    Run.objects.filter(pk=run.pk).update(admitted_at=None, started_at=None)
    evictions(run, {"AdmissionCheck": 1})
    assert not follow(run), "it had not been admitted"
    deactivate(run)
    assert follow(run)
    assert Delivery.objects.count() == 1


def test_a_job_that_fails_by_a_deactivation_is_not_started_again_against_it(run: Run) -> None:
    deactivate(run)
    job = MirrorJob.objects.get(uid=f"job-{run.workload_id}")
    job.record = {**job.record, "conditions": [condition("Failed", "True")], "suspend": True}
    job.save()
    found = outcome.outcome_of(seen(run), kind="job")
    assert found is not None
    assert (found.outcome, found.reason) == ("stopped", "deactivated")
    assert "kubectl-patch" in found.message
    assert found.reason not in outcome.INTERRUPTED_REASONS


def test_the_run_resumes_after_it(run: Run) -> None:
    removed(run, uid="one", reason="Evicted", message=LOW)
    assert follow(run)
    MirrorPod.objects.all().delete()
    running.pod_of(run.workload, uid="another")
    assert follow(run)
    assert [one.verb for one in Event.objects.order_by("pk")][-1] == "workload.resumed"
