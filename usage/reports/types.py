"""The report of a month as frozen values. Pure.

Hours and costs are exact until a line is complete; then each is rounded to two decimal places, halves up. A total is
the sum of these rounded lines, so that the lines that are shown add up to it, and a line is the same in every report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cached_property

from usage.reports.calendar_month import CalendarMonth


@dataclass(frozen=True)
class UsageLine:
    """What one person held of one class with one priority. `email`, `priority`: "" for pods of no run. `unit_hours` are
    hours in which a unit was held, `gpu_hours` GPU equivalents × hours. `is_exact` False: it includes times that are
    not exact (workloads.models.AllocationInterval).
    """

    team: str
    team_name: str
    person: str
    email: str
    gpu_class: str
    class_name: str
    priority: str
    unit_hours: Decimal
    gpu_hours: Decimal
    cost: Decimal
    is_exact: bool


@dataclass(frozen=True)
class UsageTotal:
    """The sum of `lines`, of which the first one names what they have in common. `unit_hours` means something only for
    lines of one class.
    """

    lines: tuple[UsageLine, ...]

    @property
    def line(self) -> UsageLine:
        return self.lines[0]

    @property
    def unit_hours(self) -> Decimal:
        return sum((one.unit_hours for one in self.lines), Decimal("0.00"))

    @property
    def gpu_hours(self) -> Decimal:
        return sum((one.gpu_hours for one in self.lines), Decimal("0.00"))

    @property
    def cost(self) -> Decimal:
        return sum((one.cost for one in self.lines), Decimal("0.00"))

    @property
    def is_exact(self) -> bool:
        return all(one.is_exact for one in self.lines)


@dataclass(frozen=True)
class UsageReport:
    """`lines`: the highest cost first. `as_of`: intervals that are open count until then, or to the end of the month.
    `previous`, `next`: the nearest months with any usage of the same team or teams; None: there is none.
    """

    month: CalendarMonth
    as_of: datetime
    lines: tuple[UsageLine, ...]
    previous: CalendarMonth | None
    next: CalendarMonth | None

    @property
    def since(self) -> datetime:
        return self.month.since

    @property
    def until(self) -> datetime:
        return self.month.until

    @property
    def is_over(self) -> bool:
        return self.until <= self.as_of

    @cached_property
    def total(self) -> UsageTotal:
        return UsageTotal(self.lines)

    @cached_property
    def by_team(self) -> list[UsageTotal]:
        return _totals(self.lines, lambda one: one.team)

    @cached_property
    def by_class(self) -> list[UsageTotal]:
        return _totals(self.lines, lambda one: one.gpu_class)

    @cached_property
    def by_person(self) -> list[UsageTotal]:
        """Pods of no run are one of them, for each team."""
        return _totals(self.lines, lambda one: (one.email, "" if one.email else one.team))


def _totals(lines: Iterable[UsageLine], key: Callable[[UsageLine], object]) -> list[UsageTotal]:
    found: dict[object, list[UsageLine]] = {}
    for one in lines:
        found.setdefault(key(one), []).append(one)
    totals = [UsageTotal(tuple(some)) for some in found.values()]
    return sorted(totals, key=lambda one: (-one.cost, -one.gpu_hours))
