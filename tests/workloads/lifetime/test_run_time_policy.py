"""How long runs may take, when users are notified, and how much may be added. Tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from portal.ui.text import duration_text
from workloads.core.policy import RunFacts
from workloads.launch import options
from workloads.lifetime.run_time import policy
from workloads.lifetime.run_time.policy import TimeFacts

ENDS = datetime(2026, 11, 22, 18, 0, tzinfo=UTC)
ALIVE = RunFacts(is_over=False, is_stopping=False, is_ready=True, is_deleting=False, created_by=1)


@pytest.mark.parametrize(
    ("asked", "limit", "minutes"), [(None, None, None), (8, None, 480), (None, 12, 720), (8, 12, 480), (24, 12, 720)]
)
def test_what_a_run_gets(asked: int | None, limit: int | None, minutes: int | None) -> None:
    assert options.run_minutes(asked, limit) == minutes


@pytest.mark.parametrize(("minutes", "words"), [(480, "8 h"), (90, "1 h 30 min"), (45, "45 min"), (0, "0 min")])
def test_times_in_words(minutes: int, words: str) -> None:
    assert duration_text(minutes) == words


@pytest.mark.parametrize(
    ("total_minutes", "before_end_minutes", "lead_minutes"),
    [
        (480, 31, None),
        (480, 30, 30),
        (480, 6, 30),
        (480, 5, 5),
        (480, 0.1, 5),
        (480, 0, None),
        (480, -1, None),
        (60, 7, None),
        (60, 6, 6),
        (60, 3, 3),
        (120, 12, 12),
        (120, 5, 5),
    ],
)
def test_when_people_are_told(total_minutes: int, before_end_minutes: float, lead_minutes: float | None) -> None:
    found = policy.due_warning(total_minutes, ENDS, ENDS - timedelta(minutes=before_end_minutes))
    assert found == (None if lead_minutes is None else timedelta(minutes=lead_minutes))


@pytest.mark.parametrize(("before_end_minutes", "next_minutes"), [(60, 30), (30, 5), (10, 5), (5, 0), (1, 0), (-5, 0)])
def test_when_to_look_next(before_end_minutes: int, next_minutes: int) -> None:
    found = policy.next_moment(480, ENDS, ENDS - timedelta(minutes=before_end_minutes))
    assert found == ENDS - timedelta(minutes=next_minutes)


def facts(total_hours: int | None = 8, limit_hours: int | None = 12, *, has_started: bool = True) -> TimeFacts:
    total = None if total_hours is None else total_hours * 60
    return TimeFacts("A100", total, ENDS if has_started else None, limit_hours)


@pytest.mark.parametrize(
    ("found", "hours", "code", "words"),
    [
        (facts(), 1, None, ""),
        (facts(), 4, None, ""),
        (
            facts(),
            5,
            "exceeds_run_time",
            "5 h more requested. Its time limit is 8 h from its start, until 22 Nov 2026, 18:00. ",
        ),
        (facts(), 5, "exceeds_run_time", "A100 allows 12 h. Request 1 to 4 h."),
        (facts(), 0, "exceeds_run_time", "0 h more requested."),
        (facts(), -3, "exceeds_run_time", "Request 1 to 4 h."),
        (facts(12), 1, "exceeds_run_time", "Save your work, and start it again afterwards."),
        (facts(14), 1, "exceeds_run_time", "A100 allows 12 h. Save your work"),
        (facts(limit_hours=None), 8752, None, ""),
        (facts(limit_hours=None), 8753, "exceeds_run_time", "Request 1 to 8752 h."),
        (facts(None), 1, "no_end", "no time limit to extend"),
        (facts(has_started=False), 1, "not_started", "Its 8 h count from its start."),
    ],
)
def test_what_an_extension_may_add(found: TimeFacts, hours: int, code: str | None, words: str) -> None:
    refusal = policy.may_extend(ALIVE, found, hours)
    assert (refusal.code if refusal else None) == code
    assert words in (refusal.message if refusal else "")


@pytest.mark.parametrize("change", [{"is_over": True}, {"is_stopping": True}])
def test_what_has_ended_or_is_ending_is_not_extended(change: dict[str, bool]) -> None:
    values = {"is_over": False, "is_stopping": False, "is_ready": True, "is_deleting": False, **change}
    refusal = policy.may_extend(RunFacts(**values, created_by=1), facts())
    assert refusal is not None
    assert refusal.code == "not_running"


def test_the_sentence_of_its_end_has_both_times_and_what_was_added() -> None:
    assert policy.time_over_message(480, 0, ENDS) == (
        "It reached its time limit of 8 h at 22 Nov 2026, 18:00. It started at 22 Nov 2026, 10:00."
    )
    assert "It reached its time limit of 10 h (including 2 h added) at" in policy.time_over_message(600, 120, ENDS)
