"""The list of teams as CSV: one line for each team and class. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from desk.teams.types import ClassUse, TeamListRow
from portal.core.csv_text import csv_text

COLUMNS = (
    "team",
    "name",
    "state",
    "owners",
    "last_activity_at",
    "next_expiry_at",
    "queued_runs",
    "out_of_sync",
    "class",
    "unit",
    "quota",
    "used",
    "is_shared",
)


def teams_csv(rows: Iterable[TeamListRow]) -> str:
    """A team without quota and use has one line with an empty class. Unknown figures are empty. Times in UTC."""
    return csv_text(COLUMNS, (_cells(row, use) for row in rows for use in row.uses or (None,)))


def _cells(row: TeamListRow, use: ClassUse | None) -> Iterator[object]:
    yield from (row.slug, row.name, row.state, "; ".join(one.email for one in row.owners))
    yield from (_time(row.last_activity_at), _time(row.next_expiry_at), row.queued_runs, row.out_of_sync)
    if use is None:
        yield from ("", "", "", "", "")
    else:
        used = "" if use.used is None else use.used
        yield from (use.slug, use.unit, use.quota, used, "yes" if use.is_shared else "no")


def _time(at: datetime | None) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" if at else ""
