"""In which order the nodes of a plan change, and which of them together: granted instances stay. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
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
    now = plan.offers_now
    found: list[Wave] = []
    while left:
        first = min(left, key=lambda one: (_missing(need, now, one), len(one.node.runs), one.node.name))
        missing = _missing(need, now, first)
        nodes: list[NodePlan] = []
        stay: list[NodePlan] = []
        # Without the nodes of the wave.
        open_offers = Counter(now)
        for one in [first, *(other for other in left if other is not first)]:
            is_alike = list(one.groups) == list(first.groups)
            if is_alike and _missing(need, open_offers, one) <= missing:
                nodes.append(one)
                open_offers.subtract(one.node.offers)
            else:
                stay.append(one)
        found.append(Wave(tuple(nodes), need.short(open_offers)))
        for one in nodes:
            now.subtract(one.node.offers)
            now.update(one.offers)
        left = stay
    return found


def _missing(need: Need, offers: Mapping[str, int], one: NodePlan) -> int:
    """Granted instances that do not exist of these offers while the node, which has its old layout, is closed."""
    held = one.node.offers
    return sum(max(0, n - offers.get(name, 0) + held.get(name, 0)) for name, n in need.granted.items())
