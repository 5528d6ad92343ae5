"""In which order the nodes of a plan change, and which of them together: granted instances stay. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from catalog.mig.sets.types import Need, NodePlan, SetPlan


@dataclass(frozen=True)
class Wave:
    """Nodes that get the same layout in one maintenance. `short`: granted instances that do not exist meanwhile."""

    nodes: tuple[NodePlan, ...]
    short: Mapping[str, int]


def waves(plan: SetPlan, need: Need) -> list[Wave]:
    """One after the other. A wave has as many nodes as possible without more granted instances missing than with its
    first node alone; the next first node is always one with which the fewest are missing. `need`: with all that is
    granted, also if the plan disregards it.
    """
    left = list(plan.changed)
    found: list[Wave] = []
    while left:
        first = min(left, key=lambda one: (_missing(plan, need, left, [one]), len(one.node.runs), one.node.name))
        missing = _missing(plan, need, left, [first])
        nodes = [first]
        for other in left:
            if other is first or list(other.groups) != list(first.groups):
                continue
            if _missing(plan, need, left, [*nodes, other]) <= missing:
                nodes.append(other)
        found.append(Wave(tuple(nodes), need.short(_offers(plan, left, nodes))))
        left = [one for one in left if one not in nodes]
    return found


def _missing(plan: SetPlan, need: Need, left: Sequence[NodePlan], closed: Sequence[NodePlan]) -> int:
    return sum(need.short(_offers(plan, left, closed)).values())


def _offers(plan: SetPlan, left: Sequence[NodePlan], closed: Sequence[NodePlan]) -> Counter[str]:
    """While `closed` are: nodes of `left` have their old layout, the others theirs of the plan."""
    offers: Counter[str] = Counter()
    for one in plan.nodes:
        if any(one is other for other in closed):
            continue
        offers.update(one.node.offers if any(one is other for other in left) else one.offers)
    return offers
