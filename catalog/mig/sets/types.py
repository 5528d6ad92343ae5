"""Nodes of a set, what is needed of them, and a plan for them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from catalog.mig.parted import WHOLE as WHOLE


@dataclass(frozen=True)
class SetNode:
    """`offers`: instances now by profile, and GPUs without MIG as WHOLE. `runs`: keys of runs that a change moves."""

    name: str
    gpus: int
    offers: Mapping[str, int]
    runs: frozenset[Hashable] = frozenset()


@dataclass(frozen=True)
class Need:
    """Instances by profile. `granted`: have to exist, whatever is wanted: those that exist first, then the others, and
    only then what is `wanted`.
    """

    wanted: Mapping[str, int]
    granted: Mapping[str, int]

    def short(self, offers: Mapping[str, int]) -> dict[str, int]:
        """How many granted instances would not exist, by profile."""
        return {name: n - offers.get(name, 0) for name, n in self.granted.items() if n > offers.get(name, 0)}


@dataclass(frozen=True)
class NodePlan:
    """`groups`: instances of one GPU, {WHOLE: 1} for one without MIG, and how many GPUs get them; empty: the node stays
    as it is. `offers`: afterwards.
    """

    node: SetNode
    groups: Sequence[tuple[Mapping[str, int], int]]
    offers: Mapping[str, int]

    @property
    def is_changed(self) -> bool:
        return bool(self.groups)


@dataclass(frozen=True)
class SetPlan:
    """`stranded`: memory slices that belong to no instance. `is_best`: it is proven that no layouts serve more of what
    is granted, and of these none more of what is wanted; otherwise none serves more than `at_most` wanted instances if
    all that is granted exists. `is_fewest`: proven that no fewer changed nodes do the same; otherwise at least
    `changes_least` have to change.
    """

    nodes: tuple[NodePlan, ...]
    need: Need
    stranded: int
    is_best: bool
    at_most: int
    is_fewest: bool
    changes_least: int

    @property
    def changed(self) -> tuple[NodePlan, ...]:
        return tuple(one for one in self.nodes if one.is_changed)

    @property
    def offers(self) -> Counter[str]:
        return sum((Counter(one.offers) for one in self.nodes), Counter())

    @property
    def offers_now(self) -> Counter[str]:
        return sum((Counter(one.node.offers) for one in self.nodes), Counter())

    @property
    def served(self) -> Counter[str]:
        return self.offers & Counter(self.need.wanted)

    @property
    def served_now(self) -> Counter[str]:
        return self.offers_now & Counter(self.need.wanted)

    @property
    def unserved(self) -> Counter[str]:
        return Counter(self.need.wanted) - self.offers

    @property
    def spare(self) -> Counter[str]:
        """Instances that nobody asked for, and that are not granted."""
        return self.offers - (Counter(self.need.wanted) | Counter(self.need.granted))

    @property
    def short(self) -> dict[str, int]:
        return self.need.short(self.offers)

    @property
    def runs(self) -> frozenset[Hashable]:
        return frozenset().union(*(one.node.runs for one in self.changed))
