"""Runs that maintenance moves off their nodes: how their end is read, who is told, and what a refusal does."""

from __future__ import annotations

import pytest
from django.utils import timezone

from accounts.core.actor import system_actor
from accounts.models import Delivery, Event, User
from catalog.models import GpuClass
from cluster.models import Cluster, MirrorWorkload
from tenants.models import Namespace, Tenant
from tests.support.rows import make, mirrored
from tests.support.rows.interruptions import asked, condition, follow, queue_says
from workloads.models import Run
from workloads.runs.draining.actions import request_drain
from workloads.runs.recording import record_end
from workloads.runs.requeue import requeue
from workloads.status import outcome
from workloads.status.outcome import RunOutcome, drained_outcome

pytestmark = pytest.mark.django_db
WHY = "Maintenance of node n1: new driver."


@pytest.fixture
def run(team_a: Tenant, cluster: Cluster, namespace_a: Namespace, a100: GpuClass, alice: User) -> Run:
    """A job that runs."""
    mirrored.hardware_seen(cluster)
    make.grant(team_a, a100, units=4)
    found = asked(namespace_a, a100, alice)
    queue_says(found, condition("QuotaReserved", "True"), condition("Admitted", "True"), preemptions=0)
    return found


@pytest.mark.parametrize("reason", ["deactivated", "pod_removed", "units_taken_back"])
def test_an_end_by_the_move_is_the_maintenances(reason: str) -> None:
    found = drained_outcome(RunOutcome("stopped", reason, "Said otherwise.", 143), WHY)
    assert (found.outcome, found.reason, found.exit_code) == ("stopped", "maintenance", 143)
    assert found.message == f"It was moved off its node. {WHY}"
    assert found.reason in outcome.INTERRUPTED_REASONS


@pytest.mark.parametrize("reason", ["completed", "out_of_memory", "shut_down"])
def test_an_end_of_its_own_stays_its_own(reason: str) -> None:
    own = RunOutcome("failed", reason, "Its own.", 1)
    assert drained_outcome(own, WHY) == own


def test_a_run_is_asked_once_and_not_when_it_has_ended(run: Run) -> None:
    by = system_actor("maintenance")
    assert request_drain([run.pk], reason=WHY, by=by) == 1
    before = Run.objects.get().drain_requested_at
    assert request_drain([run.pk], reason="Another.", by=by) == 0
    run.refresh_from_db()
    assert (run.drain_requested_at, run.drain_reason) == (before, WHY)
    assert Event.objects.filter(verb="workload.drain_requested").count() == 1
    Run.objects.update(drain_requested_at=None, ended_at=timezone.now(), outcome="stopped")
    assert request_drain([run.pk], reason=WHY, by=by) == 0


def test_one_mail_says_that_the_job_restarts(run: Run) -> None:
    """The eviction was told; the end that it causes, and the next run, are not told again."""
    request_drain([run.pk], reason=WHY, by=system_actor("maintenance"))
    run.refresh_from_db()
    text = "The workload is deactivated"
    queue_says(
        run,
        condition("QuotaReserved", "False", reason="Pending", message=text),
        condition("Evicted", "True", reason="Deactivated", message=text),
        preemptions=0,
    )
    queued = MirrorWorkload.objects.get()
    queued.record = {**queued.record, "evictions": {"Deactivated": 1}, "active": False}
    queued.save()
    assert follow(run)
    [mail] = Delivery.objects.all()
    assert f"its node is in maintenance. {WHY} It restarts automatically" in mail.body
    end = drained_outcome(RunOutcome("stopped", "deactivated", "", 143), run.drain_reason)
    assert record_end(run, end)
    again = requeue(run, end)
    assert Delivery.objects.count() == 1
    assert (again.number, again.drain_requested_at, again.drain_reason) == (2, None, "")
    event = Event.objects.get(verb="workload.brought_back")
    assert (event.after["reason"], event.after["times"]) == ("maintenance", 1)
