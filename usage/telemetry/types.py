"""Minutes of an hour as bits, and what counts as busy. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

# A device whose activity is at least this in the mean of a minute is busy.
BUSY_PERCENT = 5.0
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
MINUTES_AN_HOUR = 60


def hour_of(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0)


def bit_of(minute: datetime) -> int:
    """The bit of a minute in the columns of its hour."""
    return 1 << minute.minute


def bits_between(hour: datetime, since: datetime, until: datetime) -> int:
    """The bits of the whole minutes of that hour which lie between."""
    first = max(0, -((hour - since) // MINUTE))
    last = min(MINUTES_AN_HOUR, (until - hour) // MINUTE)
    return (1 << last) - (1 << first) if last > first else 0
