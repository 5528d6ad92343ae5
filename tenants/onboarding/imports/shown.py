"""What became of the rows of a plan, in words for the page and the command."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from tenants.onboarding.imports.types import Outcome, SettledRow

TRIED = {
    Outcome.CREATE: "will create",
    Outcome.EXISTS: "exists, unchanged",
    Outcome.DIFFERS: "differs, unchanged",
    Outcome.REFUSED: "refused",
    Outcome.LEFT_OUT: "left out",
    Outcome.KEPT: "kept where it is",
}
DONE = {**TRIED, Outcome.CREATE: "created"}
TONES = {Outcome.CREATE: "good", Outcome.DIFFERS: "wait", Outcome.REFUSED: "bad"}


@dataclass(frozen=True)
class ShownRow:
    row: SettledRow
    outcome: str
    tone: str


def shown_rows(rows: Iterable[SettledRow], *, is_applied: bool) -> list[ShownRow]:
    labels = DONE if is_applied else TRIED
    return [ShownRow(row, labels[row.outcome], TONES.get(row.outcome, "")) for row in rows]


def counts_sentence(rows: Iterable[SettledRow], *, is_applied: bool) -> str:
    counts, labels = Counter(row.outcome for row in rows), DONE if is_applied else TRIED
    return ", ".join(f"{counts[one]} {labels[one]}" for one in Outcome if counts[one]) + "."
