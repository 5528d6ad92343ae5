"""The units of a class as cells, one row per node: the team's, other teams', free. Turns numbers into geometry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cluster.reads.top_nodes import TopNode, TopNodes
from portal.ui.text import plural

# With more units, cells would be too narrow to count: the row is drawn as one bar of three parts.
CELLS = 32
ROW_HEIGHT = 16
NAME_WIDTH, GAP = 26.0, 0.5
NAME_LETTERS = 13
MINE, OTHER, FREE = "mine", "other", "free"


@dataclass(frozen=True)
class UnitCell:
    """In percent of the drawing's width."""

    look: str
    x: float
    width: float


@dataclass(frozen=True)
class NodeRow:
    name: str
    short: str
    y: int
    cells: tuple[UnitCell, ...]


@dataclass(frozen=True)
class UnitGrid:
    """`text` is the same in words. `more`: number of nodes that are not drawn."""

    rows: tuple[NodeRow, ...]
    height: int
    text: str
    more: int


def unit_grid(first: TopNodes, *, unit: str) -> UnitGrid | None:
    """Returns None if there is nothing to draw."""
    if not first.nodes:
        return None
    scale = max(node.allocatable for node in first.nodes)
    rows = tuple(
        NodeRow(node.name, _short(node.name), index * ROW_HEIGHT, _cells(_parts(node), scale))
        for index, node in enumerate(first.nodes)
    )
    return UnitGrid(rows, len(rows) * ROW_HEIGHT, _text(first, unit), first.total - len(rows))


def _parts(node: TopNode) -> tuple[tuple[str, int], ...]:
    """Used units may exceed the node's units while a node that lost devices still runs pods that had them."""
    used = min(node.used, node.allocatable)
    own = min(node.mine, used)
    return (MINE, own), (OTHER, used - own), (FREE, node.allocatable - used)


def _cells(parts: Sequence[tuple[str, int]], scale: int) -> tuple[UnitCell, ...]:
    step = (100 - NAME_WIDTH) / scale
    if scale > CELLS:
        found, at = [], NAME_WIDTH
        for look, units in parts:
            if units:
                found.append(UnitCell(look, round(at, 2), round(units * step, 2)))
            at += units * step
        return tuple(found)
    looks = [look for look, units in parts for _ in range(units)]
    return tuple(
        UnitCell(look, round(NAME_WIDTH + index * step + GAP / 2, 2), round(step - GAP, 2))
        for index, look in enumerate(looks)
    )


def _short(name: str) -> str:
    """Keeps the end of the name, because it distinguishes nodes."""
    return name if len(name) <= NAME_LETTERS else f"…{name[-(NAME_LETTERS - 1) :]}"


def _text(first: TopNodes, unit: str) -> str:
    each = []
    for node in first.nodes:
        (_, own), (_, other), (_, idle) = _parts(node)
        yours = f"{own} used by your team, " if own else ""
        each.append(f"{node.name}: {plural(node.allocatable, unit)}, {yours}{other} used by others, {idle} free")
    more = first.total - len(first.nodes)
    return "; ".join(each) + (f"; and {plural(more, 'more node')}." if more else ".")
