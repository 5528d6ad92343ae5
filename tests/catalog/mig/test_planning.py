"""Plans against a search of all layouts of all GPUs, for random demands."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from catalog.mig.planning import MigPlan, mixed_plan, single_plan
from tests.catalog.mig.placement_tables import TABLES, placements
from tests.catalog.mig.test_layouts import of

H100 = "NVIDIA-H100-80GB-HBM3"
COMBINATIONS = {product: {tuple(sorted(n for _at, n in one)) for one in placements(product)} for product in TABLES}


def most_served(product: str, demand: dict[str, int], gpus: int) -> int:
    """Every layout on every GPU: all sums that can be reached, one GPU after the other."""
    names = sorted(demand)
    parts = {tuple(Counter(one)[name] for name in names) for one in COMBINATIONS[product]}
    reached = {tuple(0 for _ in names)}
    for _gpu in range(gpus):
        reached = {
            tuple(min(demand[name], a + b) for name, a, b in zip(names, one, part, strict=True))
            for one in reached
            for part in parts
        }
    return max(map(sum, reached))


@pytest.mark.parametrize(
    "product", ["A30", H100, "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", "NVIDIA-A100-SXM4-40GB"]
)
def test_no_other_layouts_serve_more(product: str) -> None:
    card, names = of(product)
    chance = random.Random(product)
    for _ in range(250):
        gpus = chance.randint(1, 4)
        asked = chance.sample(sorted(names), chance.randint(1, 3))
        demand = {name: chance.randint(0, 2 + 2 * gpus) for name in asked}
        plan = mixed_plan(card, names, demand, gpus)
        assert plan.is_best
        assert plan.total_served == most_served(product, demand, gpus), (demand, gpus)
        _is_consistent(plan, product, demand, gpus)
        single = single_plan(card, names, demand, gpus)
        assert single.total_served <= plan.total_served
        _is_consistent(single, product, demand, gpus)


def _is_consistent(plan: MigPlan, product: str, demand: dict[str, int], gpus: int) -> None:
    supply: Counter[str] = Counter()
    for layout, number in plan.layouts:
        profiles = tuple(sorted(box.profile for box in layout))
        assert profiles in COMBINATIONS[product]
        supply.update({name: count * number for name, count in Counter(profiles).items()})
    assert sum(number for _layout, number in plan.layouts) <= gpus
    for name in {*supply, *demand}:
        assert plan.served.get(name, 0) == min(supply[name], demand.get(name, 0))
        assert plan.unserved.get(name, 0) == max(0, demand.get(name, 0) - supply[name])
        assert plan.spare.get(name, 0) == max(0, supply[name] - demand.get(name, 0))


def test_the_same_profile_on_all_gpus_with_strategy_single() -> None:
    card, names = of(H100)
    plan = single_plan(card, names, {"3g.40gb": 3, "1g.10gb": 2}, 2)
    assert [(len(layout), number) for layout, number in plan.layouts] == [(2, 2)]
    assert plan.served == {"3g.40gb": 3}
    assert plan.unserved == {"1g.10gb": 2}
    assert plan.spare == {"3g.40gb": 1}


def test_slices_without_an_instance_are_counted_as_stranded() -> None:
    card, names = of(H100)
    # Seven instances of one memory slice leave the eighth.
    assert mixed_plan(card, names, {"1g.10gb": 14}, 2).stranded == 2
    assert mixed_plan(card, names, {"3g.40gb": 4}, 2).stranded == 0


def test_no_demand_changes_no_gpu() -> None:
    card, names = of(H100)
    assert mixed_plan(card, names, {}, 4).layouts == ()
    assert mixed_plan(card, names, {"1g.10gb": 0}, 4).layouts == ()


def test_a_search_that_was_cut_short_does_not_claim_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("catalog.mig.planning._STATES_LIMIT", 2)
    card, names = of(H100)
    plan = mixed_plan(card, names, {"1g.10gb": 5, "2g.20gb": 3, "3g.40gb": 3, "4g.40gb": 1}, 4)
    assert not plan.is_best
    _is_consistent(plan, H100, {"1g.10gb": 5, "2g.20gb": 3, "3g.40gb": 3, "4g.40gb": 1}, 4)
