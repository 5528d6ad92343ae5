"""Once a minute, judges all runs that hold units, and does what the rule of their class asks for.

A run in an idle stretch has a row. All rows are written together, in a few queries whatever the number of runs. Each
notification and each stop is a transaction of its own, which looks at its row again: in the meantime its users may have
kept the run.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from accounts.core.actor import system_actor
from accounts.events.actions import deliver, record
from portal.core.due import wake
from portal.ui.text import duration_text, time_with_zone
from usage.idle import policy
from usage.idle.evidence import cost_text, measured_text
from usage.idle.held_runs import HeldRun, held_runs, measured_hours, watch_notebooks
from usage.idle.models import IdleRun
from usage.idle.policy import COUNTDOWN, GpuVerdict, IdleState, NextStep
from workloads.core.notifications import page_url, recipients_of
from workloads.interruption.loss import file_loss_of
from workloads.launch.stopping import request_stop
from workloads.lifetime.idle.reconcile import IDLE_REASON
from workloads.models import NotebookWatch, Run

IDLE_GPU_RULE = system_actor("rule idle GPUs")
# The rest follows a minute later: a maintenance of the model server may leave a whole cluster idle at once.
STEPS_AT_ONCE = 100
_EVIDENCE = (
    "namespace_id", "gpu_class_id", "units", "price_per_unit_hour", "is_idle", "idle_since", "judged_at", "minutes",
    "seen_minutes", "activity_percent", "memory_mib", "told_at", "stops_at", "kept_until", "kept_reason", "kept_by_id",
)  # fmt: skip


def update_idle_runs(*, at: datetime | None = None) -> None:
    """`at`: the time that is used instead of the current time."""
    now = at or timezone.now()
    watch_notebooks()
    held = held_runs(now)
    hours = measured_hours(held, now)
    verdicts = {
        one.run_id: policy.judge(one.held, hours.get(one.run_id, ()), read_until=one.read_until, now=now)
        for one in held
    }
    rows = _written(held, verdicts, now)
    wake(NotebookWatch, [one.watch_id for one in held if one.watch_id and verdicts[one.run_id].asks_notebook])
    due = [(one, step) for one in held if (step := _step(one, rows.get(one.run_id), now)) is not NextStep.NONE]
    for one, step in due[:STEPS_AT_ONCE]:
        _take(one, step, now)


@transaction.atomic
def _written(held: Collection[HeldRun], verdicts: Mapping[int, GpuVerdict], now: datetime) -> dict[int, IdleRun]:
    """Returns the rows of runs that are idle now."""
    before = {row.pk: row for row in IdleRun.objects.select_for_update(of=("self",), no_key=True).order_by("pk")}
    states = {run_id: verdict.state for run_id, verdict in verdicts.items()}
    over = [pk for pk in before if states.get(pk, IdleState.IN_USE) is IdleState.IN_USE]
    unknown = [pk for pk, row in before.items() if row.is_idle and states.get(pk) is IdleState.UNKNOWN]
    if over:
        IdleRun.objects.filter(pk__in=over).delete()
    if unknown:
        IdleRun.objects.filter(pk__in=unknown).update(is_idle=False)
    idle = [
        _row(one, verdicts[one.run_id], before.get(one.run_id), now)
        for one in held
        if states[one.run_id] is IdleState.IDLE
    ]
    if idle:
        IdleRun.objects.bulk_create(idle, update_conflicts=True, unique_fields=["run"], update_fields=_EVIDENCE)
    return {row.pk: row for row in idle}


def _row(one: HeldRun, verdict: GpuVerdict, before: IdleRun | None, now: datetime) -> IdleRun:
    """A new stretch, or the same with what was told and asked in it."""
    assert verdict.since is not None
    row = IdleRun(
        run_id=one.run_id,
        namespace_id=one.namespace_id,
        gpu_class_id=one.gpu_class_id,
        units=one.units,
        price_per_unit_hour=one.price_per_unit_hour,
        idle_since=verdict.since,
        judged_at=now,
        minutes=one.held.idle_minutes,
        seen_minutes=verdict.seen_minutes,
        activity_percent=verdict.activity_percent,
        memory_mib=verdict.memory_mib,
    )
    if before is not None and before.idle_since == verdict.since:
        for name in ("told_at", "stops_at", "kept_until", "kept_reason", "kept_by_id"):
            setattr(row, name, getattr(before, name))
        if one.action != "stop":
            row.stops_at = None
        elif row.stops_at is not None and not before.is_idle:
            # While nothing was known nobody could see whether it is used: the countdown starts again.
            row.stops_at = max(row.stops_at, now + COUNTDOWN)
    return row


def _step(one: HeldRun, row: IdleRun | None, now: datetime) -> NextStep:
    if row is None:
        return NextStep.NONE
    kept_until = max(filter(None, (row.kept_until, one.kept_until)), default=None)
    return policy.next_step(one.action, told_at=row.told_at, stops_at=row.stops_at, kept_until=kept_until, now=now)


@transaction.atomic
def _take(one: HeldRun, expected: NextStep, now: datetime) -> None:
    """The step, if it is still the next one."""
    rows = IdleRun.objects.select_for_update(of=("self",), no_key=True)
    row = rows.filter(pk=one.run_id, judged_at=now).select_related("gpu_class").first()
    run = Run.objects.select_related("workload__tenant", "workload__namespace").get(pk=one.run_id)
    if _step(one, row, now) is not expected or run.ended_at is not None or run.stop_requested_at is not None:
        return
    assert row is not None
    if expected is NextStep.STOP:
        _stop(row, run, now)
        return
    row.told_at = now
    if expected is NextStep.WARN:
        row.stops_at = now + COUNTDOWN
    row.save(update_fields=["told_at", "stops_at"])
    _tell(row, run, now)


def _tell(row: IdleRun, run: Run, now: datetime) -> None:
    workload, team = run.workload, run.workload.tenant
    told = measured_text(row)
    after = {"run": run.number, "idle_since": row.idle_since, "stops_at": row.stops_at, "evidence": told}
    event = record(
        IDLE_GPU_RULE,
        "run.idle_warned" if row.stops_at else "run.idle_told",
        workload,
        tenant=team.slug,
        after=after,
    )
    what = f"The GPUs of {workload.name} have not been active since {time_with_zone(row.idle_since)}: {told}."
    if row.stops_at:
        subject = (
            f"The GPUs of {workload.name} of {team.name} are idle; it is stopped at {time_with_zone(row.stops_at)}"
        )
        ask = (
            f"It is stopped at {time_with_zone(row.stops_at)}. To prevent this, use the GPUs, or keep it once with a "
            f"reason. {file_loss_of(run)}"
        )
    else:
        subject = f"The GPUs of {workload.name} of {team.name} are idle"
        ask = f"Stop it if it is not needed: other users may wait for its units. {file_loss_of(run)}"
    body = f"{what} It holds {cost_text(row, now)}. {ask}\n\n{page_url(workload)}"
    deliver(event, recipients_of(run), subject=subject, body=body)


def _stop(row: IdleRun, run: Run, now: datetime) -> None:
    workload, team, told = run.workload, run.workload.tenant, measured_text(row)
    idle = duration_text(int((now - row.idle_since).total_seconds()) // 60)
    message = f"Stopped because its GPUs were idle for {idle}: {told}."
    if not request_stop(workload, Q(pk=run.pk), reason=IDLE_REASON, message=message):
        return
    after = {"run": run.number, "idle_since": row.idle_since, "evidence": told}
    event = record(IDLE_GPU_RULE, "run.idle_stopped", workload, tenant=team.slug, after=after)
    deliver(
        event,
        recipients_of(run),
        subject=f"{workload.name} of {team.name} was stopped because its GPUs were idle",
        body=(
            f"{message} Its units are released. {file_loss_of(run)}\n\n"
            f"Start it again, or change it first: {page_url(workload)}"
        ),
    )
