"""The report of a month as frozen values. Pure.

Hours and costs are exact until a line is complete; then each is rounded to two decimal places, halves up. A total is
the sum of these rounded lines, so that the lines that are shown add up to it, and a line is the same in every report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from functools import cached_property

from usage.reports.calendar_month import CalendarMonth


@dataclass(frozen=True)
class UsageLine:
    """What one person held of one class with one priority. `email`, `priority`: "" for pods of no run. `unit_hours` are
    hours in which a unit was held, `gpu_hours` GPU equivalents × hours. `is_exact` False: it includes times that are
    not exact (workloads.models.AllocationInterval).

    `measured_cost`: of the minutes in which the activity of the GPUs was measured. `idle_cost`: of that, cost ×
    (1 - activity). GPUs that are shared are not measured by run.
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
    measured_cost: Decimal
    idle_cost: Decimal


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
    def measured_cost(self) -> Decimal:
        return sum((one.measured_cost for one in self.lines), Decimal("0.00"))

    @property
    def idle_cost(self) -> Decimal:
        return sum((one.idle_cost for one in self.lines), Decimal("0.00"))

    @property
    def is_exact(self) -> bool:
        return all(one.is_exact for one in self.lines)


@dataclass(frozen=True)
class CapacityBalance:
    """Units of a class that its nodes had in a month, and what of them was allocated. Rounded as lines are.

    capacity = allocated - not recorded - beyond capacity - price difference + unallocated, in unit-hours (which have no
    price difference) and in cost, exactly: `unallocated` is what remains, and so contains the rounding of the lines.

    `allocated`: the sum of the lines of the class. `unrecorded`: the part of it that was held while the capacity was
    not recorded. `excess`: units held beyond the capacity, as when a node is not ready. `price_difference`: what the
    rest cost more, or less, than at the price of the class at that time, because runs keep the price of their launch.
    Capacity, excess and unallocated units cost the price of that time. `recorded_since`: the first time ever; None:
    never. `recorded_hours`: hours of the month in which the capacity is recorded.
    """

    gpu_class: str
    class_name: str
    recorded_since: datetime | None
    recorded_hours: Decimal
    recorded_unit_hours: Decimal
    recorded_cost: Decimal
    unrecorded_unit_hours: Decimal
    unrecorded_cost: Decimal
    excess_unit_hours: Decimal
    excess_cost: Decimal
    price_difference: Decimal
    allocated_unit_hours: Decimal
    allocated_cost: Decimal

    @property
    def is_recorded(self) -> bool:
        """False: nothing is known of its capacity in this month."""
        return self.recorded_hours > 0

    @property
    def capacity_unit_hours(self) -> Decimal | None:
        return self.recorded_unit_hours if self.is_recorded else None

    @property
    def capacity_cost(self) -> Decimal | None:
        return self.recorded_cost if self.is_recorded else None

    @property
    def unallocated_unit_hours(self) -> Decimal | None:
        used = self.allocated_unit_hours - self.unrecorded_unit_hours - self.excess_unit_hours
        return self.recorded_unit_hours - used if self.is_recorded else None

    @property
    def unallocated_cost(self) -> Decimal | None:
        used = self.allocated_cost - self.unrecorded_cost - self.excess_cost - self.price_difference
        return self.recorded_cost - used if self.is_recorded else None


@dataclass(frozen=True)
class BalanceTotal:
    """Costs of all classes, as far as their capacity is recorded: they add up as those of one class do."""

    balances: tuple[CapacityBalance, ...]

    @property
    def capacity_cost(self) -> Decimal | None:
        return self._sum([one.recorded_cost for one in self._recorded])

    @property
    def unallocated_cost(self) -> Decimal | None:
        return self._sum([one.unallocated_cost or Decimal(0) for one in self._recorded])

    @property
    def allocated_cost(self) -> Decimal:
        return sum((one.allocated_cost for one in self.balances), Decimal("0.00"))

    @property
    def unrecorded_cost(self) -> Decimal:
        return sum((one.unrecorded_cost for one in self.balances), Decimal("0.00"))

    @property
    def excess_cost(self) -> Decimal:
        return sum((one.excess_cost for one in self.balances), Decimal("0.00"))

    @property
    def price_difference(self) -> Decimal:
        return sum((one.price_difference for one in self.balances), Decimal("0.00"))

    @property
    def _recorded(self) -> list[CapacityBalance]:
        return [one for one in self.balances if one.is_recorded]

    def _sum(self, costs: list[Decimal]) -> Decimal | None:
        return sum(costs, Decimal("0.00")) if costs else None


@dataclass(frozen=True)
class UsageReport:
    """`lines`: the highest cost first. `as_of`: intervals that are open count until then, or to the end of the month.
    `previous`, `next`: the nearest months with any usage of the same team or teams; None: there is none. `balances`: by
    class, of a report of all teams; capacity belongs to no team.
    """

    month: CalendarMonth
    as_of: datetime
    lines: tuple[UsageLine, ...]
    previous: CalendarMonth | None
    next: CalendarMonth | None
    balances: tuple[CapacityBalance, ...] = ()

    @property
    def since(self) -> datetime:
        return self.month.since

    @property
    def until(self) -> datetime:
        return self.month.until

    @property
    def is_over(self) -> bool:
        return self.until <= self.as_of

    @property
    def hours(self) -> Decimal:
        """Of the month, so far."""
        seconds = Decimal((min(self.until, self.as_of) - self.since) // timedelta(seconds=1))
        return (seconds / 3600).quantize(Decimal("0.01"), ROUND_HALF_UP)

    @cached_property
    def balance(self) -> BalanceTotal:
        return BalanceTotal(self.balances)

    @cached_property
    def total(self) -> UsageTotal:
        return UsageTotal(self.lines)

    @cached_property
    def by_team(self) -> list[UsageTotal]:
        return _totals(self.lines, lambda one: one.team)

    @cached_property
    def by_class(self) -> list[UsageTotal]:
        return by_class(self.lines)

    @cached_property
    def by_person(self) -> list[UsageTotal]:
        """Pods of no run are one of them, for each team."""
        return _totals(self.lines, lambda one: (one.email, "" if one.email else one.team))


def by_class(lines: Iterable[UsageLine]) -> list[UsageTotal]:
    return _totals(lines, lambda one: one.gpu_class)


def _totals(lines: Iterable[UsageLine], key: Callable[[UsageLine], object]) -> list[UsageTotal]:
    found: dict[object, list[UsageLine]] = {}
    for one in lines:
        found.setdefault(key(one), []).append(one)
    totals = [UsageTotal(tuple(some)) for some in found.values()]
    return sorted(totals, key=lambda one: (-one.cost, -one.gpu_hours))
