"""CSV for spreadsheets. Pure."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from decimal import Decimal

CONTENT_TYPE = "text/csv; charset=utf-8"
# A spreadsheet would compute text that begins with one of these.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_text(columns: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """A text that a spreadsheet would compute begins with an apostrophe; a number below 0 stays a number."""
    found = io.StringIO()
    writer = csv.writer(found)
    writer.writerow(columns)
    writer.writerows([_literal(cell) for cell in row] for row in rows)
    return found.getvalue()


def _literal(cell: object) -> str:
    text = str(cell)
    if isinstance(cell, int | float | Decimal):
        return text
    return f"'{text}" if text.startswith(FORMULA) else text
