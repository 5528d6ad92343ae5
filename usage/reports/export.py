"""A report as CSV: one row for each line, and one row for each class with its capacity. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from portal.core.csv_text import csv_text
from usage.reports.types import CapacityBalance, UsageLine, UsageReport

COLUMNS = (
    "month",
    "team",
    "team_name",
    "person",
    "email",
    "class",
    "priority",
    "unit_hours",
    "gpu_hours",
    "cost",
    "is_exact",
    "measured_cost",
    "idle_cost",
)
CAPACITY_COLUMNS = (
    "month",
    "class",
    "recorded_since",
    "recorded_hours",
    "capacity_unit_hours",
    "capacity_cost",
    "allocated_unit_hours",
    "allocated_cost",
    "not_recorded_unit_hours",
    "not_recorded_cost",
    "beyond_capacity_unit_hours",
    "beyond_capacity_cost",
    "price_difference_cost",
    "unallocated_unit_hours",
    "unallocated_cost",
)


def report_csv(report: UsageReport) -> str:
    return csv_text(COLUMNS, ([report.month, *_cells(one)] for one in report.lines))


def _cells(one: UsageLine) -> Iterator[object]:
    yield from (one.team, one.team_name, one.person, one.email, one.gpu_class, one.priority)
    yield from (one.unit_hours, one.gpu_hours, one.cost, "yes" if one.is_exact else "no")
    yield from (one.measured_cost, one.idle_cost)


def capacity_csv(report: UsageReport) -> str:
    """What is not known is empty."""
    return csv_text(CAPACITY_COLUMNS, ([report.month, *_capacity_cells(one)] for one in report.balances))


def _capacity_cells(one: CapacityBalance) -> Iterator[object]:
    yield from (one.gpu_class, one.recorded_since.isoformat() if one.recorded_since else "", one.recorded_hours)
    for known in (one.capacity_unit_hours, one.capacity_cost):
        yield "" if known is None else known
    yield from (one.allocated_unit_hours, one.allocated_cost, one.unrecorded_unit_hours, one.unrecorded_cost)
    yield from (one.excess_unit_hours, one.excess_cost, one.price_difference)
    for known in (one.unallocated_unit_hours, one.unallocated_cost):
        yield "" if known is None else known
