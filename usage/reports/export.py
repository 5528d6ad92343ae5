"""A report as CSV: one row for each line. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from portal.core.csv_text import csv_text
from usage.reports.types import UsageLine, UsageReport

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
)


def report_csv(report: UsageReport) -> str:
    return csv_text(COLUMNS, ([report.month, *_cells(one)] for one in report.lines))


def _cells(one: UsageLine) -> Iterator[object]:
    yield from (one.team, one.team_name, one.person, one.email, one.gpu_class, one.priority)
    yield from (one.unit_hours, one.gpu_hours, one.cost, "yes" if one.is_exact else "no")
