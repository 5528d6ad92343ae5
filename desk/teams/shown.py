"""A row of the list of teams as text for the page. Pure."""

from __future__ import annotations

from typing import Any

from desk.teams.types import GpuSum, TeamListRow
from portal.ui.text import decimal_text, plural_form


def shown_row(row: TeamListRow) -> dict[str, Any]:
    return {
        "team": row,
        "uses": [
            {
                "slug": one.slug,
                "name": one.name,
                "text": f"{'–' if one.used is None else one.used}/{one.quota} {plural_form(one.unit)}",
                "borrows": one.borrowed > 0,
            }
            for one in row.uses
        ],
        "sums": [
            text
            for label, is_shared, found in (("Exclusive", False, row.exclusive), ("Shared", True, row.shared))
            if (text := _sum(row, label, found, is_shared=is_shared))
        ],
    }


def _sum(row: TeamListRow, label: str, found: GpuSum, *, is_shared: bool) -> str:
    """ "" for a single class of whole GPUs: its own line says the same."""
    added = [one for one in row.uses if one.is_gpu and one.is_shared == is_shared]
    if not added or (len(added) == 1 and added[0].weight == 1):
        return ""
    used = "–" if found.used is None else decimal_text(found.used)
    return f"{label}: {used}/{decimal_text(found.quota)} GPUs"
