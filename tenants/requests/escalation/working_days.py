"""Working days, Monday to Friday. Public holidays are not known. Pure."""

from __future__ import annotations

from datetime import datetime, time, timedelta, tzinfo

SATURDAY = 5


def after_working_days(start: datetime, days: int, zone: tzinfo) -> datetime:
    """The same time of day so many working days later. What begins at a weekend begins with the Monday after it."""
    at = start.astimezone(zone)
    if at.weekday() >= SATURDAY:
        at = datetime.combine(at.date() + timedelta(days=7 - at.weekday()), time(0), zone)
    left = days
    while left:
        # By the calendar of the zone: the clock may be put forward or back in between.
        at = datetime.combine(at.date() + timedelta(days=1), at.time(), zone)
        left -= at.weekday() < SATURDAY
    return at
