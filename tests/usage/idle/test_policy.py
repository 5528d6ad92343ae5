"""When a run is idle, and what happens next: every rule beside its neighbour."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from usage.idle import policy
from usage.idle.policy import GpuVerdict, Held, IdleState, MeasuredHour, NextStep, NotebookAnswer
from usage.telemetry.types import MINUTE, bit_of, hour_of
from workloads.core.policy import RunFacts

NOW = datetime(2026, 11, 27, 12, 20, 30, tzinfo=UTC)
READ = NOW.replace(second=0)
HOUR = timedelta(hours=1)
# Held since long ago; the rule's minutes are 11:20 to 12:20.
JOB = Held(since=NOW - 10 * HOUR, idle_minutes=60)
FIRST = READ - 60 * MINUTE


def hours(seen: set[datetime], busy: set[datetime], activity: float = 0.5, memory_mib: float = 0) -> list[MeasuredHour]:
    """Rows of these minutes; each has that mean activity and memory."""
    found = {}
    for minute in sorted(seen):
        one = found.get(hour_of(minute), MeasuredHour(hour_of(minute), 0, 0, 0.0))
        found[hour_of(minute)] = replace(
            one,
            seen_minutes=one.seen_minutes | bit_of(minute),
            busy_minutes=one.busy_minutes | (bit_of(minute) if minute in busy else 0),
            activity_sum=one.activity_sum + activity,
            memory_last_mib=memory_mib,
        )
    return [*found.values()]


def minutes(since: datetime, until: datetime) -> set[datetime]:
    return {since + number * MINUTE for number in range((until - since) // MINUTE)}


LONG = minutes(READ - 180 * MINUTE, READ)


def judge(
    seen: set[datetime] = LONG,
    busy: set[datetime] = frozenset(),  # type: ignore[assignment]
    *,
    held: Held = JOB,
    read_until: datetime | None = READ,
    now: datetime = NOW,
    memory_mib: float = 0,
) -> GpuVerdict:
    return policy.judge(held, hours(seen, busy, memory_mib=memory_mib), read_until=read_until, now=now)


# ---- GPUs ------------------------------------------------------------------------------------------------------------


def test_an_hour_without_activity_is_idle_since_the_start_of_the_allocation() -> None:
    found = judge(memory_mib=40_000)
    assert found == GpuVerdict(IdleState.IDLE, JOB.since, 60, 0.5, 40_000)


@pytest.mark.parametrize(
    ("busy", "state"),
    [
        (FIRST - MINUTE, IdleState.IDLE),
        (FIRST, IdleState.IN_USE),
        (FIRST + 30 * MINUTE, IdleState.IN_USE),
        (READ - MINUTE, IdleState.IN_USE),
    ],
)
def test_one_busy_minute_of_the_sixty_is_use(busy: datetime, state: IdleState) -> None:
    found = judge(busy={busy})
    assert found.state is state
    assert found.since == (busy + MINUTE if state is IdleState.IDLE else None)


def test_a_busy_minute_that_was_read_early_is_use() -> None:
    """One reader may be ahead of what is known to be complete."""
    assert judge(LONG | {READ}, {READ}).state is IdleState.IN_USE


@pytest.mark.parametrize(("missing", "state"), [(6, IdleState.IDLE), (7, IdleState.UNKNOWN)])
def test_nine_of_ten_minutes_have_to_be_measured(missing: int, state: IdleState) -> None:
    """54 of 60 are 90 %, 53 are 88 %."""
    found = judge(LONG - minutes(FIRST, FIRST + missing * MINUTE))
    assert (found.state, found.seen_minutes) == (state, 54 if state is IdleState.IDLE else 0)


@pytest.mark.parametrize(("missing", "state"), [(10, IdleState.IDLE), (11, IdleState.UNKNOWN)])
def test_eighty_nine_of_a_hundred_minutes_are_no_verdict(missing: int, state: IdleState) -> None:
    rule = replace(JOB, idle_minutes=100)
    assert judge(LONG - minutes(READ - 60 * MINUTE, READ - (60 - missing) * MINUTE), held=rule).state is state


def test_the_newest_minute_has_to_be_measured() -> None:
    assert judge(LONG - {READ - MINUTE}).state is IdleState.UNKNOWN
    assert judge(LONG - {READ - 2 * MINUTE}).state is IdleState.IDLE


@pytest.mark.parametrize(
    ("silent_for", "state"),
    [(timedelta(minutes=3), IdleState.IDLE), (timedelta(minutes=3, seconds=1), IdleState.UNKNOWN)],
)
def test_a_silent_prometheus_says_nothing_after_three_minutes(silent_for: timedelta, state: IdleState) -> None:
    assert judge(now=READ + silent_for).state is state


def test_without_prometheus_nothing_is_known() -> None:
    assert judge(read_until=None).state is IdleState.UNKNOWN
    assert judge(set()).state is IdleState.UNKNOWN


@pytest.mark.parametrize(("since", "state"), [(FIRST, IdleState.IDLE), (FIRST + MINUTE, IdleState.UNKNOWN)])
def test_units_have_to_be_held_for_all_of_the_minutes(since: datetime, state: IdleState) -> None:
    """So a run that was preempted starts anew: what it did before is of another allocation."""
    assert judge(held=replace(JOB, since=since)).state is state


def test_a_busy_minute_of_an_earlier_allocation_does_not_count() -> None:
    held = replace(JOB, since=FIRST - 10 * MINUTE)
    assert judge(busy={FIRST - 13 * MINUTE}, held=held).since == held.since


def test_a_shared_gpu_judges_nobody() -> None:
    assert judge(held=replace(JOB, is_shared=True)).state is IdleState.UNKNOWN
    [*exclusive, last] = hours(LONG, set())
    of_the_card = [*exclusive, replace(last, is_shared=True)]
    assert policy.judge(JOB, of_the_card, read_until=READ, now=NOW).state is IdleState.UNKNOWN


def test_a_mean_is_only_that_of_an_hour_without_earlier_minutes() -> None:
    """Busy until 11:10, so the sums of 11 o'clock have minutes of use; those of 12 o'clock have none."""
    rows = hours(LONG, {FIRST - 11 * MINUTE}, activity=3, memory_mib=500)
    assert policy.judge(JOB, rows, read_until=READ, now=NOW).activity_percent == 3
    of_eleven = [one for one in rows if one.hour.hour < 12]
    until = READ.replace(minute=0)
    found = policy.judge(replace(JOB, idle_minutes=45), of_eleven, read_until=until, now=until)
    assert found.state is IdleState.IDLE
    assert (found.activity_percent, found.memory_mib) == (None, 500), "the memory of the newest minute is known"


def naive(seen: set[datetime], busy: set[datetime], held: Held, read_until: datetime) -> tuple[IdleState, int]:
    """Minute by minute, as the rule is written."""
    asked = [read_until - (number + 1) * MINUTE for number in range(held.idle_minutes)]
    if any(one in busy for one in asked if one >= held.since):
        return IdleState.IN_USE, 0
    found = [one for one in asked if one in seen]
    if min(asked) < held.since or asked[0] not in seen or len(found) < 0.9 * len(asked):
        return IdleState.UNKNOWN, 0
    return IdleState.IDLE, len(found)


@given(
    missing=st.sets(st.integers(0, 179), max_size=12),
    busy=st.sets(st.integers(0, 179), max_size=2),
    idle_minutes=st.integers(5, 150),
    held_for=st.integers(1, 200),
    offset=st.integers(0, 59),
)
def test_the_verdict_is_that_of_a_reader_of_minutes(
    missing: set[int], busy: set[int], idle_minutes: int, held_for: int, offset: int
) -> None:
    read = READ + offset * MINUTE
    all_minutes = minutes(read - 180 * MINUTE, read)
    seen = all_minutes - {read - (number + 1) * MINUTE for number in missing}
    used = {read - (number + 1) * MINUTE for number in busy} & seen
    held = Held(since=read - held_for * MINUTE, idle_minutes=idle_minutes)
    found = policy.judge(held, hours(seen, used), read_until=read, now=read)
    assert (found.state, found.seen_minutes) == naive(seen, used, held, read)
    if found.state is IdleState.IDLE:
        ends = [one + MINUTE for one in used if one >= held.since]
        assert found.since == max([held.since, *ends])


# ---- notebooks -------------------------------------------------------------------------------------------------------

ANSWER = NotebookAnswer(NOW - timedelta(seconds=20), NOW - 2 * HOUR, is_computing=False, is_silent=False)


def notebook(answer: NotebookAnswer) -> GpuVerdict:
    return judge(held=replace(JOB, answer=answer))


def test_a_notebook_has_to_say_that_it_is_not_used() -> None:
    assert notebook(ANSWER) == GpuVerdict(IdleState.IDLE, NOW - 2 * HOUR, 60, 0.5, 0)


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (replace(ANSWER, is_computing=True), IdleState.IN_USE),
        (replace(ANSWER, last_activity=FIRST + MINUTE), IdleState.IN_USE),
        (replace(ANSWER, last_activity=FIRST), IdleState.IDLE),
        (replace(ANSWER, is_silent=True), IdleState.UNKNOWN),
        (NotebookAnswer(None, None, is_computing=False, is_silent=False), IdleState.UNKNOWN),
        (replace(ANSWER, answered_at=NOW - 3 * MINUTE), IdleState.IDLE),
        (replace(ANSWER, answered_at=NOW - 3 * MINUTE - timedelta(seconds=1)), IdleState.UNKNOWN),
    ],
)
def test_use_or_no_answer_is_not_idle(answer: NotebookAnswer, state: IdleState) -> None:
    assert notebook(answer).state is state


@pytest.mark.parametrize(
    ("answer", "is_asked"),
    [
        (ANSWER, False),
        (replace(ANSWER, answered_at=NOW - 2 * MINUTE), True),
        (replace(ANSWER, answered_at=NOW - 20 * MINUTE), True),
        (replace(ANSWER, is_silent=True), False),
        (replace(ANSWER, is_computing=True), False),
    ],
)
def test_a_notebook_is_asked_again_only_if_its_answer_would_matter(answer: NotebookAnswer, is_asked: bool) -> None:
    assert notebook(answer).asks_notebook is is_asked


# ---- the next step ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "told", "stops_in", "kept_for", "step"),
    [
        ("tell", None, None, None, NextStep.TELL),
        ("tell", NOW, None, None, NextStep.NONE),
        ("tell", NOW, None, -1, NextStep.NONE),
        ("off", None, None, None, NextStep.NONE),
        ("stop", None, None, None, NextStep.WARN),
        ("stop", NOW, 1, None, NextStep.NONE),
        ("stop", NOW, 0, None, NextStep.STOP),
        ("stop", NOW, None, 1, NextStep.NONE),
        ("stop", NOW, 0, 1, NextStep.NONE),
        ("stop", NOW, None, 0, NextStep.WARN),
    ],
)
def test_steps(action: str, told: datetime | None, stops_in: int | None, kept_for: int | None, step: NextStep) -> None:
    def minutes_on(number: int | None) -> datetime | None:
        return None if number is None else NOW + number * MINUTE

    found = policy.next_step(
        action, told_at=told, stops_at=minutes_on(stops_in), kept_until=minutes_on(kept_for), now=NOW
    )
    assert found is step


# ---- refusals --------------------------------------------------------------------------------------------------------

RUNS = RunFacts(is_over=False, is_stopping=False, is_ready=True, is_deleting=False, created_by=1)


@pytest.mark.parametrize(
    ("run", "idle", "before", "hours_asked", "reason", "code"),
    [
        (RUNS, True, False, 24, "a reason", None),
        (RUNS, True, False, 25, "a reason", "bad_hours"),
        (RUNS, True, False, 0, "a reason", "bad_hours"),
        (RUNS, True, False, 1, " ", "no_reason"),
        (RUNS, True, False, 1, "x" * 201, "no_reason"),
        (RUNS, True, True, 1, "a reason", "already_kept"),
        (RUNS, False, False, 1, "a reason", "not_idle"),
        (replace(RUNS, is_stopping=True), True, False, 1, "a reason", "not_running"),
    ],
)
def test_who_may_keep(run: RunFacts, idle: bool, before: bool, hours_asked: int, reason: str, code: str | None) -> None:
    found = policy.may_keep(run, is_idle=idle, kept_before=before, hours=hours_asked, reason=reason)
    assert (found.code if found else None) == code
