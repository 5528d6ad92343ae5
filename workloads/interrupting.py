"""Interruptions are written down and told, each once: what the worker does about what the queue did to a run.

Of each there is one mail, with what is known of the way back: once the queue has said what the run waits for, or after
a while without. A worker that was away tells it later, from what the queue's Workload has counted. That it is at work
again is an event; a notebook's people get a mail then too, since it waits for them. A job needs nobody to go on.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from accounts.actions import deliver, record
from accounts.actor import system
from accounts.models import Event
from catalog.life_cycle import date_and_time
from cluster.observed import Workload as Queued
from cluster.run_spec import NOTEBOOK
from workloads import ending, interruption, queries, workers
from workloads.estimate import CannotTell, Wait
from workloads.models import Run, Workload
from workloads.phase import WAITING
from workloads.queries import WorkloadRow
from workloads.queries.estimates import wait_of
from workloads.queries.interruptions import INTERRUPTED, RESUMED, earlier_of, last_told, told_in
from workloads.seen import Seen
from workloads.telling import page_of, people_of

RULE = system("rule interruptions")
# The queue says within moments what the run waits for now.
SETTLES = timedelta(seconds=30)


def follow(run: Run, seen: Seen) -> bool:
    """Whether something was written down that had not been. No query for a run that was never interrupted."""
    is_moved = _put_back(run, seen)
    return _interrupted(run, seen) or bool(run.preemptions and resumed(run, seen)) or is_moved


def _put_back(run: Run, seen: Seen) -> bool:
    """Whether it holds its units has changed."""
    admitted = seen.queue.condition("Admitted") if seen.queue is not None else None
    if admitted is None or run.admitted_at is None:
        return False
    at = None if admitted.is_true else max(admitted.since or run.admitted_at, run.admitted_at)
    if run.put_back_at == at:
        return False
    run.put_back_at = at
    return bool(Run.objects.filter(pk=run.pk, ended_at=None).update(put_back_at=at))


# ---- it was interrupted ----------------------------------------------------------------------------------------------


def _interrupted(run: Run, seen: Seen) -> bool:
    queue = seen.queue
    if queue is None or queue.preemptions <= run.preemptions:
        return False
    if seen.job is not None and ending.has_failed(seen.job):
        # Another run takes its place, and who brings that back tells it.
        return bool(_count(run, queue.preemptions))
    if _may_fail(seen) and not _has_settled(queue):
        return False
    row = queries.rows(queries.with_names(Workload.objects.filter(pk=run.workload_id)))[0]
    return _is_settled(run, queue, row) and _tell(run, queue, row)


def settles_at(run: Run, seen: Seen) -> datetime | None:
    """When the worker has to look again, of an interruption that was not told yet: nothing may happen until then."""
    condition = seen.queue.condition("Preempted") if seen.queue is not None else None
    if seen.queue is None or seen.queue.preemptions <= run.preemptions or condition is None or condition.since is None:
        return None
    return condition.since + SETTLES


def _has_settled(queue: Queued) -> bool:
    condition = queue.condition("Preempted")
    return condition is not None and condition.since is not None and timezone.now() >= condition.since + SETTLES


def _may_fail(seen: Seen) -> bool:
    """Its pod left as a crash does: either the Job fails by it, or it is heard in a moment that it is suspended."""
    return seen.job is not None and seen.job.is_true("FailureTarget")


def _is_settled(run: Run, queue: Queued, row: WorkloadRow) -> bool:
    condition = queue.condition("Preempted")
    if condition is None or not condition.is_true or run.stop_requested_at is not None:
        return True
    if _has_settled(queue):
        return True
    return wait_of(row.status) not in (None, Wait.UNSEEN)


@transaction.atomic
def _tell(run: Run, queue: Queued, row: WorkloadRow) -> bool:
    if not _count(run, queue.preemptions):
        return False
    condition = queue.condition("Preempted")
    earlier = earlier_of(last_told([run]).get(run.pk))
    times = earlier + queue.preemptions
    found = interruption.told(condition, times) if condition else interruption.Interrupted(None, "", times)
    workload = run.workload
    after = {"run": run.number, "at": found.at, "rule": found.rule, "times": times, "earlier": earlier}
    event = record(RULE, INTERRUPTED, workload, tenant=workload.tenant.slug, after=after)
    if run.stop_requested_at is None:
        deliver(
            event,
            people_of(run),
            subject=f"{workload.name} of {workload.tenant.name} was interrupted",
            body=f"{workload.name}: {found.sentence} {costs(run)}\n\n{way_back(row)}\n\n{page_of(workload)}",
        )
    return True


def _count(run: Run, times: int) -> int:
    """0: another worker did, or it is over."""
    changed = Run.objects.filter(pk=run.pk, ended_at=None, preemptions__lt=times).update(preemptions=times)
    if changed:
        run.preemptions = times
    return changed


def costs(run: Run) -> str:
    """What is lost by an interruption."""
    spec = run.spec
    return interruption.loses(
        spec["kind"],
        checkpoints=spec.get("checkpoints", False),
        claim=spec["claim"],
        mount_path=spec.get("mount_path", ""),
    )


def way_back(row: WorkloadRow) -> str:
    """Its place, and when it may start again."""
    if row.status.phase not in WAITING:
        return "It has its units again already."
    why = interruption.why(row.interrupted.rule) if row.interrupted else ""
    parts = [row.status.sentence.removeprefix(f"Interrupted: {why}. ")]
    if position := row.status.facts.get("position"):
        parts.append(f"It is {workers.ordinal(position)} in your team's queue.")
    told = row.estimate
    if isinstance(told, CannotTell):
        parts.append(f"Nobody can tell when it starts again, because {told.because}.")
    elif told is not None:
        first = "at any moment" if told.is_open else f"at {date_and_time(told.earliest)} at the earliest"
        latest = date_and_time(told.latest)
        parts.append(f"It may start again {first}, and at {latest} at the latest ({told.basis}).")
    return " ".join(parts)


# ---- it is at work again ---------------------------------------------------------------------------------------------


def resumed(run: Run, seen: Seen) -> bool:
    """Of a run that was interrupted, or that came back from one that was. One query while it is at work."""
    if run.number == 1 and not run.preemptions:
        return False
    at = _at_work_since(run, seen)
    if at is None or run.stop_requested_at is not None or _untold(run, at) is None:
        return False
    with transaction.atomic():
        # One worker alone, and not what another one has just told.
        Run.objects.select_for_update(no_key=True).get(pk=run.pk)
        told = _untold(run, at)
        if told is not None:
            _tell_resumed(run, told)
    return told is not None


def _untold(run: Run, at: datetime) -> Event | None:
    """What was told last, if that it is at work again since then was not."""
    told = last_told([run]).get(run.pk)
    if told is None or told.verb == RESUMED:
        return None
    before = told_in(told).at
    return None if before is not None and at <= before else told


def _tell_resumed(run: Run, told: Event) -> None:
    found, workload = told_in(told), run.workload
    after = {
        "run": run.number,
        "at": found.at,
        "rule": found.rule,
        "reason": found.cause,
        "times": found.times,
        "earlier": earlier_of(told),
    }
    event = record(RULE, RESUMED, workload, tenant=workload.tenant.slug, after=after)
    if workload.kind == NOTEBOOK:
        deliver(
            event,
            people_of(run),
            subject=f"{workload.name} of {workload.tenant.name} is ready again",
            body=f"{workload.name} is ready again. {found.sentence} {costs(run)}\n\n{page_of(workload)}",
        )


def _at_work_since(run: Run, seen: Seen) -> datetime | None:
    if seen.queue is not None and (seen.queue.is_true("Evicted") or not seen.queue.is_true("Admitted")):
        return None
    return workers.all_ready_since(seen.pods, run.workers)
