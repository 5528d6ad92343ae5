"""Numbers and times as text, for pages, emails and refusals."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from fractions import Fraction

from django.utils import timezone

NAMES_SHOWN = 3
MINUTES_PER_HOUR = 60

NO_PLURAL = frozenset({"GiB"})


def first_names(of: Iterable[str]) -> str:
    """`a, b, c and 4 more`."""
    found = sorted(of)
    more = len(found) - NAMES_SHOWN
    return ", ".join(found[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def time_or_date(at: datetime, *, now: datetime) -> str:
    """`14:00` for a time of today, otherwise with the day."""
    at, now = timezone.localtime(at), timezone.localtime(now)
    return f"{at:%H:%M}" if at.date() == now.date() else f"{at:%H:%M} on {at.day} {at:%b %Y}"


def date_and_time(at: datetime) -> str:
    at = timezone.localtime(at)
    return f"{at.day} {at:%b %Y, %H:%M}"


def date_with_year(at: datetime) -> str:
    """`05 Nov 2026`, for emails and refusals."""
    return f"{at:%d %b %Y}"


def time_with_zone(at: datetime) -> str:
    """`05 Nov 2026, 14:00 UTC`, for emails and refusals, which are read in any time zone."""
    return f"{at:%d %b %Y, %H:%M %Z}"


def capital(text: str) -> str:
    """Makes only the first letter large; `str.capitalize` would make the others small."""
    return text[:1].upper() + text[1:]


def plural(count: float, unit: str) -> str:
    """`1 GPU`, `4 GPUs`, `0 shares`: the number always carries its unit."""
    return f"{count:g} {unit if count == 1 else plural_form(unit)}".rstrip()


def plural_form(unit: str) -> str:
    """`GPUs`, `shares`, and `GiB`, which has no plural."""
    return unit if unit in NO_PLURAL or not unit else f"{unit}s"


def with_full_stop(text: str) -> str:
    """Adds a full stop if there is none: texts of users and clusters end with or without one."""
    return text if text.endswith((".", "!", "?")) else f"{text}."


def decimal_text(value: Fraction) -> str:
    """At most two decimal places, without trailing zeros: 8, 1.14."""
    return f"{float(value):.2f}".rstrip("0").rstrip(".")


def price_text(value: Decimal) -> str:
    """Two decimal places, or more if the price has more."""
    return f"{value:.2f}" if value == round(value, 2) else f"{value.normalize():f}"


def duration_text(total_minutes: int) -> str:
    """90 → "1 h 30 min"."""
    hours, rest = divmod(total_minutes, MINUTES_PER_HOUR)
    return " ".join(
        part for part in (f"{hours} h" if hours else "", f"{rest} min" if rest or not hours else "") if part
    )


def ordinal(number: int) -> str:
    suffix = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"
