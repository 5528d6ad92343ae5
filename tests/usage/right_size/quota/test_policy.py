"""Each condition of a smaller total beside the case in which it does not hold."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from tenants.grants.promises import Step
from usage.right_size.quota.policy import least_units, smaller_total
from usage.right_size.quota.types import HeldActivity, QuotaUse, SmallerTotal

UNTIL = date(2026, 12, 31)
USE = QuotaUse("a100", "A100", "GPU", days=30, total=8, total_min=8, until=UNTIL, peak=2, seen_share=1.0)
MEASURED = HeldActivity(held=100.0, measured=100.0, busy=40.0, busy_units_max=1)


def test_less_was_in_use_than_the_total() -> None:
    assert smaller_total(USE) == SmallerTotal(
        "a100", "A100", "GPU", total=8, units=2, until=UNTIL,
        why="In 30 days at most 2 of 8 GPUs were in use at the same time.",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "units"),
    [
        ({"peak": None}, None),
        ({"seen_share": 0.8}, 2),
        ({"seen_share": 0.799}, None),
        # The whole time, the team could have used more.
        ({"total_min": 9}, 2),
        ({"total_min": 7}, None),
        ({"total_min": 0}, None),
        ({"is_waiting": True}, None),
        ({"may_request": False}, None),
        ({"peak": 7}, 7),
        ({"peak": 8}, None),
        ({"peak": 12}, None),
        ({"peak": 0}, 0),
        ({"total": 10, "total_min": 10, "peak": 9}, 9),
        ({"total": 100, "total_min": 100, "peak": 91}, None),
        ({"total": 0, "total_min": 0, "peak": 0}, None),
    ],
)
def test_what_suggests_a_smaller_total(changes: dict[str, Any], units: int | None) -> None:
    found = smaller_total(replace(USE, **changes))
    assert (found.units if found else None) == units


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"peak": 0}, "In 30 days none of 8 GPUs was in use."),
        ({"peak": 0, "activity": MEASURED}, "In 30 days none of 8 GPUs was in use."),
        ({"activity": MEASURED}, "at most 2 of 8 GPUs were in use at the same time, and at most 1 of them was busy."),
        ({"peak": 1}, "at most 1 of 8 GPUs was in use at the same time."),
        # The sum of what followed each other in an hour is not more than was in use.
        ({"activity": replace(MEASURED, busy_units_max=4)}, "and at most 2 of them were busy."),
        (
            {"activity": replace(MEASURED, measured=97.9)},
            "at most 1 of them was busy (activity was measured during 97 % of what was held).",
        ),
        ({"activity": replace(MEASURED, measured=80.0)}, "busy (activity was measured during 80 % of what was held)."),
        ({"activity": replace(MEASURED, measured=79.9)}, "were in use at the same time."),
        ({"seen_share": 0.979}, "at the same time. Use was measured during 97 % of that time."),
        ({"unit": "slice"}, "at most 2 of 8 slices were in use"),
    ],
)
def test_the_reason_has_the_figures(changes: dict[str, Any], why: str) -> None:
    found = smaller_total(replace(USE, **changes))
    assert found is not None
    assert why in found.why
    assert found.why.endswith(".")


def test_unknown_activity_is_not_zero() -> None:
    assert HeldActivity(held=10.0, measured=0.0, busy=0.0, busy_units_max=0).share is None
    assert HeldActivity(held=10.0, measured=5.0, busy=0.0, busy_units_max=0).share == 0.0
    assert MEASURED.share == 0.4
    # Late minutes may be measured twice at an edge: never more than all.
    assert HeldActivity(held=10.0, measured=10.1, busy=1.0, busy_units_max=1).seen_share == 1.0
    assert HeldActivity(held=0.0, measured=0.0, busy=0.0, busy_units_max=0).seen_share == 0.0


def test_the_least_that_was_in_force() -> None:
    start = datetime(2026, 11, 1, tzinfo=UTC)
    instant, day = timedelta(microseconds=1), timedelta(days=1)

    def least(*steps: tuple[timedelta, int]) -> int:
        return least_units([Step(start + after, units) for after, units in steps], start + 30 * day)

    assert least((timedelta(0), 8)) == 8
    assert least((timedelta(0), 8), (9 * day, 4), (20 * day, 12)) == 4
    # A grant ends with the last instant of its day.
    assert least((timedelta(0), 8), (9 * day - instant, 0), (9 * day, 8)) == 8
    assert least((timedelta(0), 8), (9 * day, 0), (9 * day + timedelta(minutes=1), 8)) == 0
    assert least((timedelta(0), 0), (day, 8)) == 0
