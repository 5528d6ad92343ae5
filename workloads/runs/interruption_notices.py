"""Records each preemption of a run by the queue, and notifies people of it once.

One email is sent per preemption, with what is known about the restart: as soon as the queue has reported what the run
waits for, or after a short time without that report. If the worker was down, it sends the email later, based on the
preemption count of the Kueue Workload. An event records that the run is running again. For a notebook an email is sent
then too, since a notebook waits for its users and a job does not.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from accounts.core.actor import system_actor
from accounts.events.actions import deliver, record
from accounts.models import Event
from cluster.manifests.run_spec import NOTEBOOK
from cluster.reads.observed import KueueWorkload as Queued
from portal.ui import text
from portal.ui.text import date_and_time
from workloads.core import workload_sql
from workloads.core.notifications import page_url, recipients_of
from workloads.core.observation import Observation, job_has_failed
from workloads.interruption import preemption
from workloads.interruption.loss import interruption_loss_of
from workloads.interruption.queries import (
    INTERRUPTED,
    RESUMED,
    earlier_interruptions,
    interruption_from_event,
    last_interruption_events,
)
from workloads.models import Run, Workload
from workloads.runs import disruption_notices
from workloads.runs.node_removal import removal_notices
from workloads.status import queries, workers
from workloads.status.estimates.estimate import CannotTell, WaitReason
from workloads.status.estimates.queries import wait_reason
from workloads.status.types import QUEUED_PHASES
from workloads.status.workload_row import WorkloadRow

INTERRUPTION_RULE = system_actor("rule interruptions")
# The queue reports what a preempted run waits for within a few seconds.
SETTLING_TIME = timedelta(seconds=30)


def record_preemptions(run: Run, seen: Observation) -> bool:
    """Returns whether something new was recorded. No query for a run that was never preempted."""
    is_moved = _put_back(run, seen)
    is_warned = removal_notices.record_removal_notice(run, seen)
    is_disrupted = disruption_notices.record_disruptions(run, seen)
    if _interrupted(run, seen):
        return True
    # A worker that looks late finds the run disrupted and running again.
    is_resumed = bool(run.preemptions or run.disruptions) and record_resumption(run, seen)
    return is_disrupted or is_resumed or is_moved or is_warned


def _put_back(run: Run, seen: Observation) -> bool:
    """Stores when the run lost its admission. Returns whether that has changed."""
    admitted = seen.queue.condition("Admitted") if seen.queue is not None else None
    if admitted is None or run.admitted_at is None:
        return False
    at = None if admitted.is_true else max(admitted.since or run.admitted_at, run.admitted_at)
    if run.put_back_at == at:
        return False
    run.put_back_at = at
    return bool(Run.objects.filter(pk=run.pk, ended_at=None).update(put_back_at=at))


# ---- notice of an interruption ---------------------------------------------------------------------------------------


def _interrupted(run: Run, seen: Observation) -> bool:
    queue = seen.queue
    if queue is None or queue.preemptions <= run.preemptions:
        return False
    if seen.job is not None and job_has_failed(seen.job):
        # Another run replaces this one, and the email is sent where that run is created.
        return bool(_count(run, queue.preemptions))
    if _may_fail(seen) and not _has_settled(queue):
        return False
    row = queries.workload_rows(workload_sql.with_related(Workload.objects.filter(pk=run.workload_id)))[0]
    return _is_settled(run, queue, row) and _tell(run, queue, row)


def settles_at(run: Run, seen: Observation) -> datetime | None:
    """Returns when the worker has to check a preemption without an email again, since no other event may wake it
    before.
    """
    condition = seen.queue.condition("Preempted") if seen.queue is not None else None
    if seen.queue is None or seen.queue.preemptions <= run.preemptions or condition is None or condition.since is None:
        return None
    return condition.since + SETTLING_TIME


def _has_settled(queue: Queued) -> bool:
    condition = queue.condition("Preempted")
    return condition is not None and condition.since is not None and timezone.now() >= condition.since + SETTLING_TIME


def _may_fail(seen: Observation) -> bool:
    """The pod exited as in a crash: either the Job fails because of it, or the Job is soon reported as suspended."""
    return seen.job is not None and seen.job.is_true("FailureTarget")


def _is_settled(run: Run, queue: Queued, row: WorkloadRow) -> bool:
    condition = queue.condition("Preempted")
    if condition is None or not condition.is_true or run.stop_requested_at is not None:
        return True
    if _has_settled(queue):
        return True
    return wait_reason(row.status) not in (None, WaitReason.UNSEEN)


@transaction.atomic
def _tell(run: Run, queue: Queued, row: WorkloadRow) -> bool:
    if not _count(run, queue.preemptions):
        return False
    condition = queue.condition("Preempted")
    earlier = earlier_interruptions(last_interruption_events([run]).get(run.pk))
    times = earlier + queue.preemptions + len(run.disruptions)
    found = (
        preemption.interruption_from_condition(condition, times)
        if condition
        else preemption.Interruption(None, "", times)
    )
    workload = run.workload
    after = {"run": run.number, "at": found.at, "rule": found.rule, "times": times, "earlier": earlier}
    event = record(INTERRUPTION_RULE, INTERRUPTED, workload, tenant=workload.tenant.slug, after=after)
    if run.stop_requested_at is None:
        deliver(
            event,
            recipients_of(run),
            subject=f"{workload.name} of {workload.tenant.name} was preempted",
            body=(
                f"{workload.name}: {found.sentence} {interruption_loss_of(run)}\n\n"
                f"{resumption_outlook(row)}\n\n{page_url(workload)}"
            ),
        )
    return True


def _count(run: Run, times: int) -> int:
    """Stores the number of preemptions. Returns 0 if another worker has stored it already, or if the run has ended."""
    changed = Run.objects.filter(pk=run.pk, ended_at=None, preemptions__lt=times).update(preemptions=times)
    if changed:
        run.preemptions = times
    return changed


def resumption_outlook(row: WorkloadRow) -> str:
    """Describes the run's position in the queue and when it may start again."""
    if row.status.phase not in QUEUED_PHASES:
        return "It is already admitted again."
    explained = row.status.explained
    parts = [explained.wait_sentence if explained and explained.wait_sentence else row.status.sentence]
    if position := row.status.facts.get("position"):
        parts.append(f"It is {text.ordinal(position)} in your team's queue.")
    told = row.estimate
    if isinstance(told, CannotTell):
        parts.append(f"No start estimate: {told.because}.")
    elif told is not None:
        first = "now" if told.is_open else date_and_time(told.earliest)
        parts.append(f"Estimated restart: {first} to {date_and_time(told.latest)} ({told.basis}).")
    return " ".join(parts)


# ---- notice that it is running again ---------------------------------------------------------------------------------


def record_resumption(run: Run, seen: Observation) -> bool:
    """Records that a run that was interrupted, or that replaces an interrupted run, is running again. One query while
    it is running.
    """
    if run.number == 1 and not run.preemptions and not run.disruptions:
        return False
    at = _at_work_since(run, seen)
    if at is None or run.stop_requested_at is not None or _untold(run, at) is None:
        return False
    with transaction.atomic():
        # The lock lets only one worker record it; the second read finds what another worker has just recorded.
        Run.objects.select_for_update(no_key=True).get(pk=run.pk)
        told = _untold(run, at)
        if told is not None:
            _tell_resumed(run, told)
    return told is not None


def _untold(run: Run, at: datetime) -> Event | None:
    """Returns the last recorded interruption, unless it is already recorded that the run resumed after it."""
    told = last_interruption_events([run]).get(run.pk)
    if told is None or told.verb == RESUMED:
        return None
    before = interruption_from_event(told).at
    return None if before is not None and at <= before else told


def _tell_resumed(run: Run, told: Event) -> None:
    found, workload = interruption_from_event(told), run.workload
    after = {
        "run": run.number,
        "at": found.at,
        "rule": found.rule,
        "reason": found.cause,
        "times": found.times,
        "earlier": earlier_interruptions(told),
    }
    event = record(INTERRUPTION_RULE, RESUMED, workload, tenant=workload.tenant.slug, after=after)
    if workload.kind == NOTEBOOK:
        deliver(
            event,
            recipients_of(run),
            subject=f"{workload.name} of {workload.tenant.name} is ready again",
            body=(
                f"{workload.name} is ready again. {found.sentence} {interruption_loss_of(run)}\n\n{page_url(workload)}"
            ),
        )


def _at_work_since(run: Run, seen: Observation) -> datetime | None:
    if seen.queue is not None and (seen.queue.is_true("Evicted") or not seen.queue.is_true("Admitted")):
        return None
    return workers.all_ready_since(seen.pods, run.workers)
