"""Months of the server's time zone, and what is no month."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from portal.core.errors import Refused
from usage.reports.calendar_month import CalendarMonth, month_asked, month_of

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)


def test_a_month_of_utc_has_its_days() -> None:
    month = CalendarMonth(2026, 2)
    assert (month.since, month.until) == (datetime(2026, 2, 1, tzinfo=UTC), datetime(2026, 3, 1, tzinfo=UTC))
    assert str(month) == "2026-02"


@pytest.mark.parametrize(("number", "hours"), [(3, 31 * 24 - 1), (10, 31 * 24 + 1), (7, 31 * 24)])
def test_a_change_of_the_clock_makes_a_month_longer_or_shorter(settings: Any, number: int, hours: int) -> None:
    settings.TIME_ZONE = "Europe/Berlin"
    month = CalendarMonth(2026, number)
    assert month.until.astimezone(UTC) - month.since.astimezone(UTC) == timedelta(hours=hours)


def test_the_first_hours_of_a_month_are_the_servers(settings: Any) -> None:
    at = datetime(2026, 9, 30, 22, 30, tzinfo=UTC)
    assert month_of(at) == CalendarMonth(2026, 9)
    settings.TIME_ZONE = "Europe/Berlin"
    assert month_of(at) == CalendarMonth(2026, 10)


@pytest.mark.parametrize(
    ("months", "found"), [(0, "2026-01"), (-1, "2025-12"), (-13, "2024-12"), (11, "2026-12"), (12, "2027-01")]
)
def test_months_after_and_before(months: int, found: str) -> None:
    assert str(CalendarMonth(2026, 1).after(months)) == found


@pytest.mark.parametrize(
    "text",
    ["", "2026-13", "2026-00", "2026-1", "26-11", "2026-11-01", " 2026-11", "2026-11\n", "1999-12", "２０２６-11"],
)
def test_what_is_no_month_is_refused_with_the_value_and_the_form(text: str) -> None:
    with pytest.raises(Refused) as refused:
        month_asked(text, at=NOW)
    refusal = refused.value.refusal
    assert (refusal.code, refusal.field, refusal.status) == ("invalid", "month", 422)
    assert f"'{text}'" in refusal.message
    assert "YYYY-MM" in refusal.message


def test_the_last_month_is_the_current_one() -> None:
    assert month_asked(None, at=NOW) == month_asked("2026-11", at=NOW) == CalendarMonth(2026, 11)
    with pytest.raises(Refused) as refused:
        month_asked("2026-12", at=NOW)
    assert refused.value.refusal.field == "month"
    assert "2026-12 has not begun. The last one is 2026-11." in refused.value.refusal.message
