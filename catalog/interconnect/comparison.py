"""What the measurements of the nodes of one class have in common, and which node differs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from statistics import median

from catalog.interconnect.node_state import outdated
from catalog.interconnect.types import AllReduce, Links, Measurement, NodeState, rate
from portal.ui.text import plural

# A node whose bandwidth is this part below the median of its class is reported. Our choice: a link that runs at half
# its width or that falls back from NVLink to PCIe costs more than this; nodes of one kind that differ by less are told
# by their figures.
SLOWER_BY = Decimal("0.10")


@dataclass(frozen=True)
class LinkGroup:
    """Nodes of a class with the same links, by name."""

    links: Links
    nodes: tuple[str, ...]
    last: date


@dataclass(frozen=True)
class RateGroup:
    """Nodes of a class that were measured with the same number of GPUs and the same message size."""

    on: AllReduce
    rates: Mapping[str, Decimal]
    last: date

    @property
    def median(self) -> Decimal:
        return median(self.rates.values())

    @property
    def slow(self) -> dict[str, Decimal]:
        """By node, by which part it is below the median. Nothing is below a median of 0."""
        if not (middle := self.median):
            return {}
        behind = {node: 1 - one / middle for node, one in self.rates.items()}
        return {node: part for node, part in sorted(behind.items()) if part > SLOWER_BY}


@dataclass(frozen=True)
class ClassInterconnect:
    """`nodes` of the class; `old`: what was measured there may no longer hold, so it is in no group. By name."""

    nodes: tuple[str, ...]
    links: tuple[LinkGroup, ...] = ()
    rates: tuple[RateGroup, ...] = ()
    old: tuple[str, ...] = ()

    @property
    def without_links(self) -> int:
        return len(self.nodes) - sum(len(one.nodes) for one in self.links)

    @property
    def is_measured(self) -> bool:
        return bool(self.links or self.rates)

    @property
    def sentences(self) -> list[str]:
        return list(_sentences(self))


def compare(nodes: Mapping[str, NodeState], measured: Mapping[str, tuple[Measurement, ...]]) -> ClassInterconnect:
    """`nodes`: those of the class, as they are now."""
    valid: list[Measurement] = []
    old: set[str] = set()
    for name, state in sorted(nodes.items()):
        for one in measured.get(name, ()):
            if outdated(one.state, state):
                old.add(name)
            else:
                valid.append(one)
    return ClassInterconnect(tuple(sorted(nodes)), _link_groups(valid), _rate_groups(valid), tuple(sorted(old)))


def _link_groups(found: Iterable[Measurement]) -> tuple[LinkGroup, ...]:
    """The largest first."""
    groups: dict[object, list[tuple[Links, Measurement]]] = {}
    for one in found:
        if one.links is not None:
            groups.setdefault(one.links.shape, []).append((one.links, one))
    made = [
        LinkGroup(same[0][0], tuple(one.node for _, one in same), max(one.measured_on for _, one in same))
        for same in groups.values()
    ]
    return tuple(sorted(made, key=lambda one: (-len(one.nodes), one.nodes)))


def _rate_groups(found: Iterable[Measurement]) -> tuple[RateGroup, ...]:
    """The largest first."""
    groups: dict[tuple[int, int], list[tuple[AllReduce, Measurement]]] = {}
    for one in found:
        if one.all_reduce is not None:
            groups.setdefault(one.all_reduce.size, []).append((one.all_reduce, one))
    made = [
        RateGroup(
            same[0][0], {one.node: rated.bus_gb_s for rated, one in same}, max(one.measured_on for _, one in same)
        )
        for same in groups.values()
    ]
    return tuple(sorted(made, key=lambda one: (-len(one.rates), one.on.size)))


def _sentences(found: ClassInterconnect) -> Iterator[str]:
    for group in found.links:
        yield f"{group.links.text} on {plural(len(group.nodes), 'node')}, last measured {_day(group.last)}."
    for one in found.rates:
        values = one.rates.values()
        spread = f" ({rate(min(values))} to {rate(max(values))})" if len(values) > 1 else ""
        what = "median of " if len(values) > 1 else ""
        yield (
            f"all_reduce {rate(one.median)} with {one.on.on}: {what}{plural(len(values), 'node')}{spread}, last "
            f"measured {_day(one.last)}."
        )
    if found.old:
        yield f"Measured before the node changed, and not counted: {plural(len(found.old), 'node')}."
    if found.is_measured and found.without_links:
        yield f"Links are not measured on {found.without_links} of {plural(len(found.nodes), 'node')}."


def _day(on: date) -> str:
    return f"{on.day} {on:%b %Y}"
