"""Plans for as many nodes as are planned together: how long they take, and that nothing is too deep."""

from __future__ import annotations

import random
import time
from collections import Counter

import pytest

from catalog.mig.sets.planning import plan_set
from catalog.mig.sets.types import WHOLE, Need, NodePlan, SetNode, SetPlan
from catalog.mig.sets.waves import Wave, waves
from operations.maintenance.policy import NODES_MOST
from tests.catalog.mig.sets.test_planning import H100, random_offers
from tests.catalog.mig.test_layouts import of

RUNS = 56


def large_set(kinds: int, *, gpus: int, nodes: int = NODES_MOST) -> list[SetNode]:
    """Each node has its most runs, some of which are on the next as well."""
    chance = random.Random(kinds)
    some = [random_offers(chance, H100, gpus, is_single=False) for _ in range(kinds)]
    return [
        SetNode(f"n{at:03}", gpus, some[at % kinds], frozenset(range(at * RUNS, at * RUNS + RUNS + 5)))
        for at in range(nodes)
    ]


@pytest.mark.parametrize("kinds", [1, 2, 3, NODES_MOST])
def test_as_many_nodes_as_may_be_are_planned_in_about_a_second(kinds: int) -> None:
    """Grants of all that exists allow only small waves. The limit in seconds leaves room for a busy machine."""
    card, profiles = of(H100)
    nodes = large_set(kinds, gpus=8)
    chance = random.Random(kinds)
    wanted = {name: chance.randint(300, 900) for name in sorted([*profiles, WHOLE])}
    before = time.process_time()
    plan = plan_set(card, profiles, nodes, Need(wanted, {}), is_single=False)
    found = waves(plan, Need(wanted, dict(plan.offers_now)))
    assert time.process_time() - before < 3
    assert len(plan.changed) > NODES_MOST / 2
    assert len(found) > len(plan.changed) / 3
    assert plan.served.total() <= plan.at_most


def test_more_slots_than_python_has_frames_are_searched() -> None:
    """A first result that stops at once leaves all to the search, which looks at one slot after the other."""
    card, profiles = of(H100)
    nodes = large_set(1, gpus=16)
    need = Need({"1g.10gb": 4000, "1g.20gb": 1000, "2g.20gb": 1100, "3g.40gb": 700}, {})
    plan = plan_set(card, profiles, nodes, need, is_single=False)
    assert plan.served.total() > plan.served_now.total()


def test_the_search_alone_goes_as_deep_as_there_are_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("catalog.mig.sets.planning._STEPS_LIMIT", 0)
    card, profiles = of(H100)
    nodes = [SetNode(f"n{at:03}", 16, {WHOLE: 16}) for at in range(NODES_MOST)]
    plan = plan_set(card, profiles, nodes, Need({"1g.10gb": 7 * 16 * NODES_MOST}, {}), is_single=False)
    assert (plan.served.total(), plan.is_best) == (7 * 16 * NODES_MOST, True)


def test_waves_are_what_a_look_at_all_nodes_says() -> None:
    """Sums that are kept up to date, against sums over all nodes each time."""
    card, profiles = of(H100)
    for seed in range(60):
        chance = random.Random(seed)
        nodes = large_set(chance.choice([1, 2, 5]), gpus=2, nodes=6)
        names = chance.sample([*sorted(profiles), WHOLE], 3)
        plan = plan_set(
            card, profiles, nodes, Need({name: chance.randint(0, 30) for name in names}, {}), is_single=False
        )
        need = Need({}, {name: chance.randint(0, n) for name, n in plan.offers_now.items()})
        assert waves(plan, need) == waves_by_hand(plan, need)


def waves_by_hand(plan: SetPlan, need: Need) -> list[Wave]:
    left, found = list(plan.changed), []

    def short(closed: list[NodePlan]) -> dict[str, int]:
        offers: Counter[str] = Counter()
        for one in plan.nodes:
            if one not in closed:
                offers.update(one.node.offers if one in left else one.offers)
        return need.short(offers)

    def missing(closed: list[NodePlan]) -> int:
        return sum(short(closed).values())

    while left:
        nodes = [min(left, key=lambda one: (missing([one]), len(one.node.runs), one.node.name))]
        most = missing(nodes)
        for other in left:
            alike = other not in nodes and list(other.groups) == list(nodes[0].groups)
            if alike and missing([*nodes, other]) <= most:
                nodes.append(other)
        found.append(Wave(tuple(nodes), short(nodes)))
        left = [one for one in left if one not in nodes]
    return found
