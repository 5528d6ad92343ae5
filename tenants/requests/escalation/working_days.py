"""Working days, Monday to Friday. Public holidays are not known. Pure."""

from __future__ import annotations

from datetime import datetime, time, timedelta, tzinfo

SATURDAY = 5


def after_working_days(start: datetime, days: int, zone: tzinfo) -> datetime:
    """Returns the same time of day that many working days later. A start at a weekend counts from the next Monday."""
    at = start.astimezone(zone)
    if at.weekday() >= SATURDAY:
        at = datetime.combine(at.date() + timedelta(days=7 - at.weekday()), time(0), zone)
    left = days
    while left:
        # Counts in the time zone's calendar: the clock may change to or from daylight saving time in between.
        at = datetime.combine(at.date() + timedelta(days=1), at.time(), zone)
        left -= at.weekday() < SATURDAY
    return at
