"""CSV for spreadsheets. Pure."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

CONTENT_TYPE = "text/csv; charset=utf-8"
# A spreadsheet would compute text that begins with one of these.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_text(columns: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """A cell that a spreadsheet would compute begins with an apostrophe, which makes it text."""
    found = io.StringIO()
    writer = csv.writer(found)
    writer.writerow(columns)
    writer.writerows([_literal(str(cell)) for cell in row] for row in rows)
    return found.getvalue()


def _literal(text: str) -> str:
    return f"'{text}" if text.startswith(FORMULA) else text
