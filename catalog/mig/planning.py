"""Which layouts of a number of equal GPUs serve a demand best. Pure. Why it counts instances: docs/adr/0083."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from catalog.discovery.mig_placement import MigLayout, card_layout, free_slices
from catalog.discovery.mig_profiles import MigCard, MigProfile
from catalog.mig.layouts import full_layouts, profiles_of

# States of the search: about a second on one core.
_STATES_LIMIT = 50_000


@dataclass(frozen=True)
class MigPlan:
    """`layouts`: how many GPUs get each layout. `served`, `unserved`, `spare`: instances by profile that meet the
    demand, that it lacks, and that nobody asked for. `stranded`: memory slices that belong to no instance.
    `is_best`: it is proven that no other layouts of these GPUs serve more instances.
    """

    layouts: tuple[tuple[MigLayout, int], ...]
    served: Mapping[str, int]
    unserved: Mapping[str, int]
    spare: Mapping[str, int]
    stranded: int
    is_best: bool

    @property
    def total_served(self) -> int:
        return sum(self.served.values())


def mixed_plan(card: MigCard, profiles: Mapping[str, MigProfile], demand: Mapping[str, int], gpus: int) -> MigPlan:
    """The plan with most served instances. `demand`: instances by profile, all of them profiles of the GPU."""
    wanted = Counter({name: n for name, n in demand.items() if n > 0})
    offered = _useful(full_layouts(card, profiles), wanted)
    search = _Search([counts for _layout, counts in offered], wanted)
    chosen, is_best = search.best(gpus)
    return _plan(card, demand, [(offered[index][0], number) for index, number in chosen], is_best=is_best)


def _useful(layouts: Sequence[MigLayout], wanted: Counter[str]) -> list[tuple[MigLayout, Counter[str]]]:
    """Layouts with what they serve of the demand, without those of which another serves as much and more."""
    by_served: dict[frozenset[tuple[str, int]], tuple[MigLayout, Counter[str]]] = {}
    for layout in layouts:
        served = Counter(profiles_of(layout)) & wanted
        by_served.setdefault(frozenset(served.items()), (layout, served))
    every = list(by_served.values())
    return [
        (layout, served)
        for layout, served in every
        if not any(served is not other and served <= other for _layout, other in every)
    ]


def single_plan(card: MigCard, profiles: Mapping[str, MigProfile], demand: Mapping[str, int], gpus: int) -> MigPlan:
    """The best plan with the same profile on all GPUs, which MIG strategy single requires."""
    if not any(demand.values()):
        return _plan(card, demand, [], is_best=True)
    plans = [_plan(card, demand, [(one, gpus)], is_best=True) for one in _uniform_layouts(card, profiles)]
    return max(plans, key=lambda plan: (plan.total_served, -plan.stranded))


def _uniform_layouts(card: MigCard, profiles: Mapping[str, MigProfile]) -> list[MigLayout]:
    """For each profile the layout with as many instances of it as one GPU holds."""
    found = (card_layout(card, {name: shape.most}) for name, shape in profiles.items())
    return [layout for layout in found if layout]


def _plan(
    card: MigCard, demand: Mapping[str, int], layouts: Sequence[tuple[MigLayout, int]], *, is_best: bool
) -> MigPlan:
    supply: Counter[str] = Counter()
    for layout, number in layouts:
        for name in profiles_of(layout):
            supply[name] += number
    wanted = Counter({name: n for name, n in demand.items() if n > 0})
    return MigPlan(
        layouts=tuple((layout, number) for layout, number in layouts if number),
        served=dict(supply & wanted),
        unserved=dict(wanted - supply),
        spare=dict(supply - wanted),
        stranded=sum(len(free_slices(card, layout)) * number for layout, number in layouts),
        is_best=is_best,
    )


class _Search:
    """Branch and bound over the layouts of one GPU after the other.

    A GPU serves at most what the best layout serves of the rest of the demand, so the number of GPUs that are left
    times that is a bound. Orders of the same layouts lead to the same rest, which is searched once.
    """

    def __init__(self, layouts: Sequence[Counter[str]], wanted: Counter[str]) -> None:
        self.names = sorted(wanted)
        self.layouts = [tuple(layout[name] for name in self.names) for layout in layouts]
        self.wanted = tuple(wanted[name] for name in self.names)
        self.fewest_left = sum(self.wanted)
        self.chosen: tuple[int, ...] = ()
        self.seen: set[tuple[tuple[int, ...], int]] = set()

    def best(self, gpus: int) -> tuple[list[tuple[int, int]], bool]:
        """Returns (index of a layout, number of GPUs), and whether the search came to its end."""
        self._try((), self.wanted, gpus)
        return sorted(Counter(self.chosen).items()), len(self.seen) < _STATES_LIMIT

    def _try(self, chosen: tuple[int, ...], left: tuple[int, ...], gpus: int) -> None:
        total = sum(left)
        if total < self.fewest_left:
            self.fewest_left, self.chosen = total, chosen
        if gpus == 0 or (left, gpus) in self.seen or len(self.seen) >= _STATES_LIMIT:
            return
        self.seen.add((left, gpus))
        gains = [(sum(map(min, layout, left)), -index) for index, layout in enumerate(self.layouts)]
        for gain, index in sorted(gains, reverse=True):
            if gain == 0 or total - gpus * gain >= self.fewest_left:
                return
            rest = tuple(max(0, n - held) for n, held in zip(left, self.layouts[-index], strict=True))
            self._try((*chosen, -index), rest, gpus - 1)
