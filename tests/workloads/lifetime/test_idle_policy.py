"""When a notebook is idle, and what follows. Tables: the answer of its server at 15:00 → the action."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from cluster.client.jupyter import Kernel, NotebookActivity
from workloads.core.policy import RunFacts
from workloads.lifetime.idle import policy as idle_policy
from workloads.lifetime.idle.policy import IdleFacts, IdleStep

NOW = datetime(2026, 11, 22, 15, 0, tzinfo=UTC)
ALIVE = RunFacts(is_over=False, is_stopping=False, is_ready=True, is_deleting=False, created_by=1)
HOUR = IdleFacts(timedelta(minutes=60))


def ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


WARNED = replace(HOUR, warned_at=ago(10), stops_at=NOW)


def answer(
    server: float = 300,
    *,
    kernels: tuple[tuple[str, float], ...] = (),
    terminals: tuple[float, ...] = (),
    tabs: int = 0,
) -> NotebookActivity:
    """The minutes since the last activity: of the server, of each kernel with its state, of each terminal."""
    found = tuple(
        Kernel(state, ago(minutes), tabs if index == 0 else 0) for index, (state, minutes) in enumerate(kernels)
    )
    return NotebookActivity(ago(server), tabs if found else 0, found, tuple(ago(minutes) for minutes in terminals))


@pytest.mark.parametrize(
    ("activity", "watched", "step"),
    [
        # no answer: nothing is stopped, whatever happened before
        (None, HOUR, IdleStep.UNKNOWN),
        (None, WARNED, IdleStep.UNKNOWN),
        (None, replace(WARNED, stops_at=ago(5)), IdleStep.UNKNOWN),
        # a computing kernel, however long it has been silent
        (answer(kernels=(("busy", 299),)), HOUR, IdleStep.IN_USE),
        (answer(kernels=(("busy", 299),)), WARNED, IdleStep.IN_USE),
        (answer(kernels=(("idle", 299), ("busy", 299))), WARNED, IdleStep.IN_USE),
        (answer(kernels=(("unknown", 299),)), WARNED, IdleStep.IN_USE),
        # used a moment ago, or not idle for long enough
        (answer(49), HOUR, IdleStep.IDLE),
        (answer(kernels=(("idle", 49),)), HOUR, IdleStep.IDLE),
        (answer(kernels=(("idle", 300), ("idle", 49))), HOUR, IdleStep.IDLE),
        (answer(terminals=(300, 49)), HOUR, IdleStep.IDLE),
        # ten minutes before the stop: the user is notified
        (answer(50), HOUR, IdleStep.WARN),
        (answer(300), HOUR, IdleStep.WARN),
        (answer(kernels=(("idle", 50),)), HOUR, IdleStep.WARN),
        (answer(kernels=(("starting", 300), ("dead", 300))), HOUR, IdleStep.WARN),
        (answer(terminals=(50,)), HOUR, IdleStep.WARN),
        # notified; the stop is due, or not yet
        (answer(60), WARNED, IdleStep.STOP),
        (answer(59), replace(WARNED, warned_at=ago(9), stops_at=NOW + timedelta(minutes=1)), IdleStep.IDLE),
        (answer(300), replace(WARNED, stops_at=NOW + timedelta(minutes=5)), IdleStep.IDLE),
        # used since the notification
        (answer(5), WARNED, IdleStep.IDLE),
        (answer(kernels=(("idle", 5),)), WARNED, IdleStep.IDLE),
        (answer(terminals=(5,)), WARNED, IdleStep.IDLE),
        # an open tab calls the API all the time: that is no use; without a kernel it cannot be told from work
        (answer(0, kernels=(("idle", 300),), tabs=2), WARNED, IdleStep.STOP),
        (answer(0, kernels=(("idle", 300),)), WARNED, IdleStep.IDLE),
        (answer(0), WARNED, IdleStep.IDLE),
        # kept by the user
        (answer(300), replace(HOUR, kept_until=NOW + timedelta(minutes=1)), IdleStep.IDLE),
        (answer(300), replace(WARNED, kept_until=NOW + timedelta(minutes=1)), IdleStep.IDLE),
        (answer(300), replace(HOUR, kept_until=ago(1)), IdleStep.WARN),
        # a clock that is ahead
        (answer(-600), WARNED, IdleStep.IDLE),
    ],
)
def test_what_follows(activity: NotebookActivity | None, watched: IdleFacts, step: IdleStep) -> None:
    assert idle_policy.judge(activity, watched, now=NOW).step is step


def test_who_is_told_late_has_as_much_time_as_everybody() -> None:
    found = idle_policy.judge(answer(300), HOUR, now=NOW)
    assert (found.idle_since, found.stops_at) == (ago(300), NOW + timedelta(minutes=10))
    assert idle_policy.judge(answer(50), HOUR, now=NOW).stops_at == NOW + timedelta(minutes=10)


@pytest.mark.parametrize(("limit", "lead"), [(60, 10), (50, 10), (30, 6), (5, 1)])
def test_a_short_limit_warns_a_fifth_before(limit: int, lead: int) -> None:
    assert idle_policy.lead_of(timedelta(minutes=limit)) == timedelta(minutes=lead)


@pytest.mark.parametrize(
    ("activity", "watched", "again_minutes"),
    [
        (answer(45), HOUR, 5),  # when the rule could apply
        (answer(0), HOUR, 10),
        (answer(kernels=(("busy", 0),)), HOUR, 10),
        (answer(kernels=(("busy", 0),)), IdleFacts(timedelta(minutes=5)), 4),
        (answer(50), HOUR, 1),  # notified: a use is detected soon
        (answer(55), replace(HOUR, warned_at=ago(5), stops_at=NOW + timedelta(minutes=5)), 1),
        (answer(59.5), replace(HOUR, warned_at=ago(9), stops_at=NOW + timedelta(minutes=0.5)), 0.5),
        (None, replace(HOUR, answered_at=ago(3)), 1),
        (None, replace(HOUR, answered_at=ago(11)), 10),
        (None, HOUR, 10),
    ],
)
def test_how_often_it_is_asked(activity: NotebookActivity | None, watched: IdleFacts, again_minutes: float) -> None:
    found = idle_policy.judge(activity, watched, now=NOW)
    assert found.again_at == NOW + timedelta(minutes=again_minutes)


def test_a_look_that_came_a_moment_too_early_is_not_repeated_at_once() -> None:
    found = idle_policy.judge(answer(49.999), HOUR, now=NOW)
    assert found.step is IdleStep.IDLE
    assert found.again_at == NOW + timedelta(seconds=5)


def test_silence_leaves_what_people_were_told() -> None:
    assert idle_policy.judge(None, WARNED, now=NOW).stops_at == NOW


def test_the_evidence_in_words() -> None:
    found = idle_policy.evidence(answer(58, kernels=(("idle", 58), ("idle", 90)), terminals=(70,), tabs=1))
    assert found == {"computing": 0, "idle": 2, "terminals": 1, "connections": 1}
    assert idle_policy.evidence_sentence(found, last_activity=ago(58), asked_at=NOW) == (
        "last activity 22 Nov 2026, 14:02; 2 kernels idle; 1 terminal; 1 browser connection; "
        "checked at 22 Nov 2026, 15:00"
    )
    nothing = idle_policy.evidence_sentence(idle_policy.evidence(answer(58)), last_activity=None, asked_at=NOW)
    assert nothing == "no kernel; checked at 22 Nov 2026, 15:00"


@pytest.mark.parametrize(
    ("hours", "reason", "is_watched", "code"),
    [
        (1, None, True, None),
        (24, "Waits for data", True, None),
        (25, "Waits for data", True, "bad_hours"),
        (0, "Waits for data", True, "bad_hours"),
        (1, "  ", True, "no_reason"),
        (1, "x" * 201, True, "no_reason"),
        (1, "Waits for data", False, "no_idle_rule"),
    ],
)
def test_keeping(hours: int, reason: str | None, is_watched: bool, code: str | None) -> None:
    refusal = idle_policy.may_keep(ALIVE, is_watched=is_watched, hours=hours, reason=reason)
    assert (refusal.code if refusal else None) == code


@pytest.mark.parametrize(
    ("activity", "step"),
    [
        (None, IdleStep.UNKNOWN),
        (answer(kernels=(("busy", 299),)), IdleStep.IN_USE),
        (answer(kernels=(("idle", 299),)), IdleStep.IDLE),
        (answer(9999), IdleStep.IDLE),
    ],
)
def test_without_a_limit_it_is_only_asked(activity: NotebookActivity | None, step: IdleStep) -> None:
    """For the rule of idle GPUs."""
    verdict = idle_policy.judge(activity, IdleFacts(None), now=NOW)
    assert (verdict.step, verdict.stops_at) == (step, None)
    assert verdict.again_at == NOW + timedelta(minutes=10)
