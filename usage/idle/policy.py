"""Decides whether a run is idle and what happens next. Pure: minutes that were measured, and for a notebook the answer
of its server → a verdict.

Unknown is never idle. A run is idle only if its units were held for all of the last minutes of the rule, nearly all of
them were measured, the newest is current, and none is busy. The figures of a shared GPU are those of all who share it
and judge nobody. A notebook has to say itself, and just now, that nobody uses it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from portal.core.errors import Refusal
from portal.core.plain_text import hidden_refusal
from usage.telemetry.types import MINUTE, MINUTES_AN_HOUR, bit_of, bits_between, hour_of
from workloads.core.policy import RunFacts
from workloads.lifetime.idle.policy import KEEP_HOURS_MOST, REASON_LIMIT

SEEN_PERCENT_LEAST = 90
# Prometheus was read until then, and a notebook has answered since then; or neither says anything about now.
CURRENT_WITHIN = 3 * MINUTE
# From the warning to the stop.
COUNTDOWN = timedelta(minutes=10)
# A driver keeps some MiB for itself. A program that has opened a GPU holds several hundred.
NO_MEMORY_MIB = 100


class IdleState(StrEnum):
    UNKNOWN = "unknown"
    IN_USE = "in use"
    IDLE = "idle"


class NextStep(StrEnum):
    """What the class's rule asks for now."""

    NONE = "none"
    TELL = "tell"
    WARN = "warn"
    STOP = "stop"


@dataclass(frozen=True)
class MeasuredHour:
    """Of a row of RunHour. Activity in percent; memory in MiB, the sum of the devices in its last measured minute."""

    hour: datetime
    seen_minutes: int
    busy_minutes: int
    activity_sum: float
    memory_last_mib: float | None = None
    is_shared: bool = False


@dataclass(frozen=True)
class NotebookAnswer:
    """Of a notebook's server, as its watch recorded it. `answered_at` None: never."""

    answered_at: datetime | None
    last_activity: datetime | None
    is_computing: bool
    is_silent: bool


@dataclass(frozen=True)
class Held:
    """A run that holds units now, and the rule of its class. `answer` None: it is no notebook, and nobody is asked."""

    since: datetime
    idle_minutes: int
    is_shared: bool = False
    answer: NotebookAnswer | None = None


@dataclass(frozen=True)
class GpuVerdict:
    """All but `state` only if it is idle. `seen_minutes` of the rule's minutes were measured, each without activity.
    The mean activity is that of the newest hour of which no measured minute is before `since`, the memory that of the
    newest minute; None: unknown.

    `asks_notebook`: also if unknown: a newer answer of the notebook would say more.
    """

    state: IdleState
    since: datetime | None = None
    seen_minutes: int = 0
    activity_percent: float | None = None
    memory_mib: float | None = None
    asks_notebook: bool = False


UNKNOWN, IN_USE = GpuVerdict(IdleState.UNKNOWN), GpuVerdict(IdleState.IN_USE)


# ---- the verdict -----------------------------------------------------------------------------------------------------


def judge(held: Held, hours: Collection[MeasuredHour], *, read_until: datetime | None, now: datetime) -> GpuVerdict:
    """`hours`: those of the run that reach into the rule's minutes, and the last before them with a busy minute, if
    there is one. `read_until`: the end of the last minute that Prometheus was read for; None: never read.
    """
    if held.is_shared or any(one.is_shared for one in hours):
        return UNKNOWN
    if read_until is None or now - read_until > CURRENT_WITHIN:
        return UNKNOWN
    until = read_until.replace(second=0, microsecond=0)
    first = until - held.idle_minutes * MINUTE
    # A busy minute after the last one that was read for everybody counts too.
    if any(one.busy_minutes & bits_between(one.hour, max(first, held.since), now + MINUTE) for one in hours):
        return IN_USE
    seen = sum((one.seen_minutes & bits_between(one.hour, first, until)).bit_count() for one in hours)
    if held.since > first or not _is_measured(until - MINUTE, hours):
        return UNKNOWN
    if seen * 100 < held.idle_minutes * SEEN_PERCENT_LEAST:
        return UNKNOWN
    newest_first = sorted(hours, key=lambda one: one.hour, reverse=True)
    since = _last_busy_end(held.since, newest_first, until=until)
    memory = newest_first[0].memory_last_mib
    if held.answer is None:
        return GpuVerdict(IdleState.IDLE, since, seen, _mean_activity(since, newest_first), memory)
    used = _last_use(held.answer)
    if used is not None and used > first:
        return IN_USE
    if used is None or held.answer.is_silent or _is_older(held.answer, CURRENT_WITHIN, now):
        return GpuVerdict(IdleState.UNKNOWN, asks_notebook=used is not None and not held.answer.is_silent)
    since = max(since, used)
    asks = _is_older(held.answer, MINUTE, now)
    return GpuVerdict(IdleState.IDLE, since, seen, _mean_activity(since, newest_first), memory, asks_notebook=asks)


def _last_use(answer: NotebookAnswer) -> datetime | None:
    """A kernel that computes is use at the time of the answer. None: the notebook has never answered."""
    return answer.answered_at if answer.is_computing else answer.last_activity


def _is_older(answer: NotebookAnswer, age: timedelta, now: datetime) -> bool:
    return answer.answered_at is None or now - answer.answered_at > age


def _is_measured(minute: datetime, hours: Collection[MeasuredHour]) -> bool:
    return any(one.hour == hour_of(minute) and one.seen_minutes & bit_of(minute) for one in hours)


def _last_busy_end(held_since: datetime, newest_first: Collection[MeasuredHour], *, until: datetime) -> datetime:
    """The end of the last busy minute since the units are held; their start if there was none."""
    for one in newest_first:
        if busy := one.busy_minutes & bits_between(one.hour, held_since, until):
            return one.hour + busy.bit_length() * MINUTE
    return held_since


def _mean_activity(since: datetime, newest_first: Collection[MeasuredHour]) -> float | None:
    """The sum of an hour cannot be divided: an hour that was measured before `since` as well has no mean of its own."""
    for one in newest_first:
        within = bits_between(one.hour, since, one.hour + MINUTES_AN_HOUR * MINUTE)
        if one.seen_minutes and not one.seen_minutes & ~within:
            return one.activity_sum / one.seen_minutes.bit_count()
    return None


# ---- the next step ---------------------------------------------------------------------------------------------------


def next_step(
    action: str,
    *,
    told_at: datetime | None,
    stops_at: datetime | None,
    kept_until: datetime | None,
    now: datetime,
) -> NextStep:
    """For a run that is idle. `kept_until`: by its users, for this stretch."""
    if kept_until is not None and now < kept_until:
        return NextStep.NONE
    if action == "stop":
        if stops_at is None:
            return NextStep.WARN
        return NextStep.STOP if now >= stops_at else NextStep.NONE
    return NextStep.TELL if action == "tell" and told_at is None else NextStep.NONE


# ---- keeping and stopping --------------------------------------------------------------------------------------------


def may_keep(
    run: RunFacts, *, is_idle: bool, kept_before: bool, hours: int = 1, reason: str | None = None
) -> Refusal | None:
    """The user's permission is checked by `core_policy.may_manage`. `reason` None: not entered yet, for the button."""
    if run.is_over or run.is_stopping:
        return Refusal("not_running", "This workload is not running and cannot be kept.", status=409)
    if not is_idle:
        return Refusal(
            "not_idle", "The GPUs of this workload are not known to be idle. It need not be kept.", status=409
        )
    if kept_before:
        text = "It was kept once since its GPUs are idle. Use them, or stop it: other users may wait for its units."
        return Refusal("already_kept", text, status=409)
    if not 1 <= hours <= KEEP_HOURS_MOST:
        return Refusal("bad_hours", f"{hours} h requested. Enter 1 to {KEEP_HOURS_MOST} h.", "hours")
    return _reason_refusal(reason)


def may_stop_idle(run: RunFacts, *, is_idle: bool, reason: str | None = None) -> Refusal | None:
    """For an operator."""
    if run.is_over or run.is_stopping:
        return Refusal("not_running", "This workload has no running run to stop.", status=409)
    if not is_idle:
        text = "The GPUs of this workload are not known to be idle any more. Stop it on its page if it has to stop."
        return Refusal("not_idle", text, status=409)
    return _reason_refusal(reason)


def _reason_refusal(reason: str | None) -> Refusal | None:
    if reason is not None and not 1 <= len(reason.strip()) <= REASON_LIMIT:
        return Refusal("no_reason", f"Enter a reason of 1 to {REASON_LIMIT} characters.", "reason")
    return hidden_refusal("reason", reason or "")
