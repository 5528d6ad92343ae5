"""Plans for sets of nodes against a search of all layouts of all GPUs of all nodes, for random needs."""

from __future__ import annotations

import random
import time
from collections import Counter
from itertools import combinations

import pytest

from catalog.mig.sets.planning import plan_set, which_hold
from catalog.mig.sets.types import WHOLE, Need, SetNode, SetPlan
from operations.maintenance.policy import NODES_MOST
from tests.catalog.mig.placement_tables import placements
from tests.catalog.mig.test_layouts import of

H100, A30 = "NVIDIA-H100-80GB-HBM3", "A30"
LAYOUTS = {
    product: [*sorted({tuple(sorted(name for _at, name in one)) for one in placements(product)}), (WHOLE,)]
    for product in (H100, A30)
}
Rank = tuple[int, ...]


def reachable(product: str, names: list[str], gpus: int, *, is_single: bool) -> set[tuple[int, ...]]:
    """What a changed node can have of each name: every layout on every GPU, one GPU after the other."""
    _card, profiles = of(product)
    parts = [Counter(one) for one in LAYOUTS[product]]
    if is_single:
        full = {name: Counter({name: shape.most}) for name, shape in profiles.items()} | {WHOLE: Counter({WHOLE: 1})}
        return {tuple(gpus * one[name] for name in names) for one in full.values()}
    found = {tuple(0 for _ in names)}
    for _gpu in range(gpus):
        found = {tuple(a + one[name] for a, name in zip(held, names, strict=True)) for held in found for one in parts}
    return found


def best_rank(product: str, nodes: list[SetNode], need: Need, *, is_single: bool) -> Rank:
    """(granted that are lost, granted that do not exist, wanted that is not served, changed nodes, runs): the least."""
    names = sorted({*need.wanted, *need.granted})
    caps = [max(need.wanted.get(name, 0), need.granted.get(name, 0)) for name in names]

    def capped(supply: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(map(min, supply, caps))

    now = [capped(tuple(one.offers.get(name, 0) for name in names)) for one in nodes]
    then = [{capped(one) for one in reachable(product, names, node.gpus, is_single=is_single)} for node in nodes]
    before = {name: sum(one.offers.get(name, 0) for one in nodes) for name in names}
    ranks: list[Rank] = []
    for number in range(len(nodes) + 1):
        for changed in combinations(range(len(nodes)), number):
            sums = {tuple(0 for _ in names)}
            for at in range(len(nodes)):
                options = then[at] if at in changed else {now[at]}
                sums = {capped(tuple(map(int.__add__, one, more))) for one in sums for more in options}
            runs = len(frozenset().union(*(nodes[at].runs for at in changed)))
            for one in sums:
                held = dict(zip(names, one, strict=True))
                short = sum(max(0, n - held[name]) for name, n in need.granted.items())
                unserved = sum(max(0, n - held[name]) for name, n in need.wanted.items())
                lost = sum(max(0, min(n, before[name]) - held[name]) for name, n in need.granted.items())
                ranks.append((lost, short, unserved, number, runs))
    return min(ranks)


def rank_of(plan: SetPlan) -> Rank:
    kept = Counter(plan.need.granted) & plan.offers_now
    lost = (kept - plan.offers).total()
    return lost, sum(plan.short.values()), plan.unserved.total(), len(plan.changed), len(plan.runs)


def random_offers(chance: random.Random, product: str, gpus: int, *, is_single: bool) -> Counter[str]:
    _card, profiles = of(product)
    if is_single:
        name = chance.choice([*profiles, WHOLE])
        return Counter({name: gpus * (1 if name == WHOLE else profiles[name].most)})
    return sum((Counter(chance.choice(LAYOUTS[product])) for _ in range(gpus)), Counter())


def a_set(chance: random.Random, product: str, *, is_single: bool) -> tuple[list[SetNode], Need]:
    _card, profiles = of(product)
    gpus = chance.randint(1, 3)
    sizes = [gpus if is_single else chance.randint(1, 3) for _ in range(chance.randint(1, 3))]
    kinds = [random_offers(chance, product, 1, is_single=is_single) for _ in range(2)]
    nodes = []
    for at, size in enumerate(sizes):
        alike = Counter({name: n * size for name, n in chance.choice(kinds).items()})
        offers = alike if chance.random() < 0.5 else random_offers(chance, product, size, is_single=is_single)
        # Some runs are on several nodes.
        runs = frozenset(chance.sample(range(6), chance.randint(0, 3)))
        nodes.append(SetNode(f"node-{at}", size, offers, runs))
    names = chance.sample([*sorted(profiles), WHOLE], chance.randint(1, 3))
    wanted = {name: chance.randint(0, 3 * sum(sizes)) for name in names}
    granted = {name: chance.randint(0, 2 * sum(sizes)) for name in names if chance.random() < 0.5}
    return nodes, Need(wanted, granted)


@pytest.mark.parametrize(("product", "is_single"), [(A30, False), (A30, True), (H100, False), (H100, True)])
def test_no_other_plan_is_better(product: str, is_single: bool) -> None:
    sets = random_sets(product, is_single=is_single, number=120)
    plans = [(one, _is_true(product, *one, is_single=is_single)) for one in sets]
    proven = [(one, plan) for one, plan in plans if plan.is_fewest]
    assert len(proven) >= 118
    # A search that was not cut short has also seen which nodes have the fewest runs.
    assert all(rank_of(plan) == best_rank(product, *one, is_single=is_single) for one, plan in proven)


def test_a_search_that_is_cut_short_claims_only_what_is_true(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("catalog.mig.sets.planning._STATES_LIMIT", 0)
    plans = [_is_true(H100, *one, is_single=False) for one in random_sets(H100, is_single=False, number=120)]
    assert 0 < sum(plan.is_best for plan in plans) < 120
    assert 0 < sum(plan.is_fewest for plan in plans) < 120


def test_fewer_nodes_that_were_not_searched_are_not_excluded(monkeypatch: pytest.MonkeyPatch) -> None:
    """One changed node suffices here, and only a search finds its layouts."""
    card, profiles = of(A30)
    nodes = [SetNode("a", 3, {WHOLE: 3}), SetNode("b", 1, {"1g.6gb+me": 1}), SetNode("c", 1, {WHOLE: 1})]
    need = Need({"1g.6gb": 1, "2g.12gb+me": 3}, {"1g.6gb": 4})
    found = plan_set(card, profiles, nodes, need, is_single=False)
    assert (len(found.changed), found.is_fewest) == (1, True)
    monkeypatch.setattr("catalog.mig.sets.planning._STATES_LIMIT", 0)
    cut = plan_set(card, profiles, nodes, need, is_single=False)
    assert (len(cut.changed), cut.changes_least, cut.is_best, cut.is_fewest) == (2, 1, True, False)


def random_sets(product: str, *, is_single: bool, number: int) -> list[tuple[list[SetNode], Need]]:
    chance = random.Random(f"{product} {is_single}")
    return [a_set(chance, product, is_single=is_single) for _ in range(number)]


def _is_true(product: str, nodes: list[SetNode], need: Need, *, is_single: bool) -> SetPlan:
    """What a plan claims is compared with the enumeration."""
    card, profiles = of(product)
    plan = plan_set(card, profiles, nodes, need, is_single=is_single)
    best, found = best_rank(product, nodes, need, is_single=is_single), rank_of(plan)
    _is_consistent(product, plan)
    assert found >= best
    if plan.is_best:
        assert found[:3] == best[:3], (nodes, need)
    if plan.is_fewest:
        assert found[:4] == best[:4], (nodes, need)
    if found[:3] == best[:3]:
        assert plan.changes_least <= best[3]
    if not plan.short:
        assert sum(need.wanted.values()) - best[2] <= plan.at_most
    return plan


def _is_consistent(product: str, plan: SetPlan) -> None:
    layouts = {tuple(one) for one in LAYOUTS[product]}
    for one in plan.changed:
        assert sum(number for _instances, number in one.groups) == one.node.gpus
        offers: Counter[str] = Counter()
        for instances, number in one.groups:
            assert tuple(sorted(Counter(instances).elements())) in layouts
            offers.update({name: n * number for name, n in instances.items()})
        assert offers == Counter(one.offers)
        assert offers != Counter(one.node.offers)
    assert all(one.offers == one.node.offers for one in plan.nodes if not one.is_changed)


def nodes_with(*offers: dict[str, int], gpus: int = 2) -> list[SetNode]:
    return [SetNode(f"n{at}", gpus, one, frozenset({f"run-{at}"})) for at, one in enumerate(offers)]


def planned(nodes: list[SetNode], wanted: dict[str, int], granted: dict[str, int] | None = None) -> SetPlan:
    card, profiles = of(H100)
    return plan_set(card, profiles, nodes, Need(wanted, granted or {}), is_single=False)


def test_a_layout_that_is_fine_stays() -> None:
    nodes = nodes_with({"1g.10gb": 14}, {"3g.40gb": 4}, {WHOLE: 2})
    plan = planned(nodes, {"1g.10gb": 10, "3g.40gb": 4}, {WHOLE: 1})
    assert plan.changed == ()
    assert (plan.is_best, plan.is_fewest) == (True, True)
    assert (plan.spare, plan.runs) == (Counter({"1g.10gb": 4, WHOLE: 1}), frozenset())


def test_what_is_granted_comes_before_what_is_wanted() -> None:
    """Seven queued instances against one granted GPU: nobody's quota is cut for the queue."""
    nodes = nodes_with({WHOLE: 1}, gpus=1)
    assert planned(nodes, {"1g.10gb": 7}).served == Counter({"1g.10gb": 7})
    kept = planned(nodes, {"1g.10gb": 7}, {WHOLE: 1})
    assert (kept.changed, kept.short, kept.unserved) == ((), {}, Counter({"1g.10gb": 7}))
    lost = planned(nodes_with({"1g.10gb": 7}, gpus=1), {}, {"1g.10gb": 9, WHOLE: 1})
    assert lost.short == {"1g.10gb": 2, WHOLE: 1}


def test_nobody_loses_a_grant_for_another() -> None:
    """One granted GPU against seven granted instances that never existed."""
    plan = planned(nodes_with({WHOLE: 1}, gpus=1), {}, {WHOLE: 1, "1g.10gb": 7})
    assert (plan.changed, plan.short) == ((), {"1g.10gb": 7})


def test_of_equal_plans_that_with_the_fewest_runs() -> None:
    nodes = [
        SetNode("busy", 1, {WHOLE: 1}, frozenset({1, 2})),
        SetNode("free", 1, {WHOLE: 1}),
        SetNode("one", 1, {WHOLE: 1}, frozenset({3})),
    ]
    plan = planned(nodes, {"1g.10gb": 7})
    assert [one.node.name for one in plan.changed] == ["free"]


def test_a_run_on_two_nodes_is_moved_once() -> None:
    """Two nodes have to change: the two that share their runs, and not those with fewer runs each."""
    nodes = [
        SetNode("a", 1, {WHOLE: 1}, frozenset({1, 2})),
        SetNode("b", 1, {WHOLE: 1}, frozenset({1, 2})),
        SetNode("c", 1, {WHOLE: 1}, frozenset({3})),
        SetNode("d", 1, {WHOLE: 1}, frozenset({4, 5})),
    ]
    plan = planned(nodes, {"1g.10gb": 14})
    assert [one.node.name for one in plan.changed] == ["a", "b"]


def test_gpus_that_nothing_is_needed_of_get_a_known_layout() -> None:
    """So that a maintenance can verify all devices of the node."""
    plan = planned(nodes_with({WHOLE: 8}, gpus=8), {"1g.10gb": 10})
    [node] = plan.changed
    assert list(node.groups) == [({"1g.10gb": 7}, 8)]
    assert (plan.spare, plan.stranded) == (Counter({"1g.10gb": 46}), 8)


def test_nodes_get_the_same_layout_where_they_can() -> None:
    plan = planned(nodes_with(*[{WHOLE: 4}] * 4, gpus=4), {"1g.10gb": 7 * 8, "3g.40gb": 2 * 8})
    assert sorted(len(one.groups) for one in plan.changed) == [1, 1, 1, 1]


def test_nothing_to_plan() -> None:
    assert planned([], {"1g.10gb": 1}).nodes == ()
    assert planned(nodes_with({WHOLE: 2}), {}).changed == ()


def test_whether_gpus_can_have_what_a_node_says() -> None:
    card, profiles = of(H100)
    large = {"3g.40gb": 2, "1g.10gb": 7}
    asked = [(large | {WHOLE: 1}, 3), (large | {WHOLE: 1}, 2), ({"9g.90gb": 1}, 2), ({"1g.10gb": 14}, 2)]
    assert which_hold(card, profiles, asked, is_single=False) == [True, False, False, True]
    assert which_hold(card, profiles, [(large, 2), ({"1g.10gb": 14}, 2)], is_single=True) == [False, True]


def test_layouts_of_nodes_are_searched_with_one_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each node has a layout of its own, and none is said to be impossible that is not."""
    card, profiles = of(H100)
    chance = random.Random(7)
    asked = [(random_offers(chance, H100, 8, is_single=False), 8) for _ in range(NODES_MOST)]
    before = time.process_time()
    found = which_hold(card, profiles, asked, is_single=False)
    assert time.process_time() - before < 2
    assert False not in found
    assert found.count(True) >= 90
    monkeypatch.setattr("catalog.mig.sets.planning._STATES_LIMIT", 0)
    monkeypatch.setattr("catalog.mig.sets.planning._STEPS_LIMIT", 0)
    assert which_hold(card, profiles, [({"1g.10gb": 56}, 8), ({"1g.10gb": 57}, 8)], is_single=False) == [None, False]
    monkeypatch.setattr("catalog.mig.sets.planning._HOLD_LIMIT", 0)
    assert which_hold(card, profiles, asked[:2], is_single=False) == [None, None]


@pytest.mark.parametrize("is_single", [False, True])
@pytest.mark.parametrize("kinds", [1, 3, 32])
def test_32_nodes_of_8_gpus_take_no_longer_than_a_page_may(kinds: int, is_single: bool) -> None:
    """States are limited, and every plan says what is proven. The limit in seconds leaves room for a busy machine."""
    card, profiles = of(H100)
    chance = random.Random(kinds)
    for _ in range(3):
        some = [random_offers(chance, H100, 8, is_single=is_single) for _ in range(kinds)]
        nodes = [SetNode(f"n{at}", 8, some[at % kinds], frozenset({at})) for at in range(32)]
        names = chance.sample([*sorted(profiles), WHOLE], 5)
        need = Need({name: chance.randint(0, 300) for name in names}, {name: chance.randint(0, 90) for name in names})
        before = time.process_time()
        plan = plan_set(card, profiles, nodes, need, is_single=is_single)
        assert time.process_time() - before < 3
        _is_consistent(H100, plan)
        assert plan.changes_least <= len(plan.changed)
        assert plan.served.total() <= plan.at_most
        assert plan.is_best or not plan.is_fewest
