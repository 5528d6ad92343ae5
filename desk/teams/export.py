"""The list of teams as CSV: one line for each team and class. Pure."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from desk.teams.types import ClassUse, TeamListRow

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
# A spreadsheet would compute text that begins with one of these.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def teams_csv(rows: Iterable[TeamListRow]) -> str:
    """A team without quota and use has one line with an empty class. Unknown figures are empty. Times in UTC."""
    found = io.StringIO()
    writer = csv.writer(found)
    writer.writerow(COLUMNS)
    for row in rows:
        for use in row.uses or (None,):
            writer.writerow([_literal(str(cell)) for cell in _cells(row, use)])
    return found.getvalue()


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


def _literal(text: str) -> str:
    return f"'{text}" if text.startswith(FORMULA) else text
