"""A calendar month in the server's time zone. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from portal.core.errors import refuse

MONTH = re.compile(r"(20[0-9]{2})-(0[1-9]|1[0-2])")
MONTHS_A_YEAR = 12
FORM = "Use the form YYYY-MM, for example 2026-11, or leave it out for the current month."


@dataclass(frozen=True, order=True)
class CalendarMonth:
    """`number`: 1 is January."""

    year: int
    number: int

    def __str__(self) -> str:
        return f"{self.year}-{self.number:02}"

    @property
    def since(self) -> datetime:
        return datetime(self.year, self.number, 1, tzinfo=timezone.get_default_timezone())

    @property
    def until(self) -> datetime:
        """The first moment after it: a month with a change to or from daylight saving time is an hour longer or
        shorter.
        """
        return self.after(1).since

    def after(self, months: int) -> CalendarMonth:
        """`months` later; earlier if negative."""
        year, number = divmod(self.year * MONTHS_A_YEAR + self.number - 1 + months, MONTHS_A_YEAR)
        return CalendarMonth(year, number + 1)


def month_of(at: datetime) -> CalendarMonth:
    local = timezone.localtime(at, timezone.get_default_timezone())
    return CalendarMonth(local.year, local.month)


def month_asked(text: str | None, *, at: datetime) -> CalendarMonth:
    """The current month if `text` is None. Raises Refused (invalid), also for a month after `at`."""
    if text is None:
        return month_of(at)
    found = MONTH.fullmatch(text)
    if found is None:
        raise refuse("invalid", f"'{text[:40]}' is not a month. {FORM}", field="month")
    month = CalendarMonth(int(found[1]), int(found[2]))
    if month > month_of(at):
        raise refuse("invalid", f"The month {month} has not begun. The last one is {month_of(at)}.", field="month")
    return month
