"""Classes side by side: figures and contracts, one line for each topic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from catalog.contract import types as contract_types
from desk.catalog.cards import ClassCard
from portal.ui.text import plural


@dataclass(frozen=True)
class FigureRow:
    """One line of the comparison. `cells` in the order of the classes."""

    topic: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class ContractRow:
    """One topic of the contracts, None for a class without this topic."""

    topic: str
    cells: tuple[contract_types.Guarantee | None, ...]


def compare_classes(found: Sequence[ClassCard]) -> tuple[list[FigureRow], list[ContractRow]]:
    """Returns (figures, contracts)."""
    lines = [
        FigureRow("Free now", tuple(_of(card.free, card.allocatable, card.unit) for card in found)),
        FigureRow(
            "Most free on one node", tuple("–" if card.one_node is None else str(card.one_node) for card in found)
        ),
        FigureRow("Per workload", tuple(f"up to {plural(card.per_workload, card.unit)}" for card in found)),
        FigureRow(
            "Price", tuple(f"{card.price} per {card.unit}-hour" if card.price else "free of charge" for card in found)
        ),
        FigureRow("Counted as", tuple(card.counted_as for card in found)),
    ]
    if any(card.team for card in found):
        lines.append(FigureRow("Your team", tuple(card.team for card in found)))
    topics = dict.fromkeys(promise.topic for card in found for promise in card.contract.promises)
    by_topic = [{promise.topic: promise for promise in card.contract.promises} for card in found]
    return lines, [ContractRow(topic, tuple(one.get(topic) for one in by_topic)) for topic in topics]


def _of(free: int | None, allocatable: int | None, unit: str) -> str:
    return "unknown" if free is None else f"{free} of {plural(allocatable or 0, unit)}"
