"""Days that users type, converted to instants."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from django.conf import LazySettings
from django.utils import timezone

from tenants.core.forms import end_of_day, start_of_day


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
@pytest.mark.parametrize("day", [date(2026, 11, 30), date(2026, 3, 28), date(2026, 10, 25)])
def test_a_grant_until_one_day_and_one_from_the_next_leave_no_gap(day: date, zone: str, settings: LazySettings) -> None:
    """If no grant were in force for a second, another team could preempt what runs."""
    settings.TIME_ZONE = zone

    gap = start_of_day(day + timedelta(days=1)) - end_of_day(day)

    assert timedelta(0) < gap <= timedelta(microseconds=1)
    assert timezone.localdate(end_of_day(day)) == day
