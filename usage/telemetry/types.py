"""What Prometheus answers, minutes of an hour as bits, and what counts as busy. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

# A device whose activity is at least this in the mean of a minute is busy.
BUSY_PERCENT = 5.0
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
MINUTES_AN_HOUR = 60


@dataclass(frozen=True)
class Series:
    """`points`: (Unix seconds, value), as the answer has them."""

    labels: Mapping[str, str]
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class RangeAnswer:
    """`is_partial`: Prometheus answered with warnings, so that series may be missing."""

    series: tuple[Series, ...]
    is_partial: bool


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
