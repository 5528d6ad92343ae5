"""Which nodes of a set change, and to which layouts: most of what is granted and exists, then of all that is granted,
then of what is wanted, then the fewest changed nodes, then the fewest runs that are moved. Pure. Why in this order, and
what is proven: docs/adr/0098.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from math import prod

from catalog.discovery.mig_profiles import MigCard, MigProfile
from catalog.mig.layouts import full_layouts, profiles_of
from catalog.mig.sets.filling import Budget, Filling, Size, Slots, Supply
from catalog.mig.sets.types import WHOLE, Need, NodePlan, SetNode, SetPlan

# Less than half a second on one core, for all searches of a plan together.
_STATES_LIMIT = 4_000
# Of the first results of these searches.
_STEPS_LIMIT = 8_000
# Layouts of which it is searched whether GPUs can have them.
_HOLD_LIMIT = 1_000
# All subsets of so many nodes are tried.
_SUBSETS_NODES = 10
# Of more nodes, numbers of nodes with the same layout, if there are not more of them than this.
_MIXES_LIMIT = 4_000

Chosen = tuple[int, ...]
Groups = list[tuple[Mapping[str, int], int]]


def plan_set(
    card: MigCard, profiles: Mapping[str, MigProfile], nodes: Sequence[SetNode], need: Need, *, is_single: bool
) -> SetPlan:
    """`is_single`: of MIG strategy single: all GPUs of a node have the same profile, and all nodes as many GPUs."""
    on_gpu = _on_gpu(card, profiles, is_single)
    return _Planner(card, profiles, on_gpu, nodes, need, is_single).plan()


def which_hold(
    card: MigCard,
    profiles: Mapping[str, MigProfile],
    asked: Sequence[tuple[Mapping[str, int], int]],
    *,
    is_single: bool,
) -> list[bool | None]:
    """For instances and a number of GPUs, whether these can have them. What a node says is not always possible. None:
    unknown, since all searches together are limited; each has an equal part of what the ones before it left.
    """
    on_gpu, sizes = _on_gpu(card, profiles, is_single), _sizes(card, profiles)
    found: list[bool | None] = []
    states = _STATES_LIMIT
    for at, (offers, gpus) in enumerate(asked[:_HOLD_LIMIT]):
        if any(name not in sizes for name, number in offers.items() if number):
            found.append(False)
            continue
        # A search uses half of its budget.
        budget = Budget(states // (len(asked) - at) * 2, _STEPS_LIMIT)
        slots = _slots(card, on_gpu, sizes, Need(offers, {}), now={}, gpus=gpus if is_single else 1)
        before = budget.left
        found.append(slots.reaches(sum(offers.values()), 1 if is_single else gpus, budget))
        states -= before - budget.left
    return [*found, *[None] * (len(asked) - len(found))]


def _sizes(card: MigCard, profiles: Mapping[str, MigProfile]) -> dict[str, Size]:
    whole = (card.compute_slices, card.memory_slices)
    return {name: (one.compute, one.memory) for name, one in profiles.items()} | {WHOLE: whole}


def _slots(
    card: MigCard,
    on_gpu: Sequence[Mapping[str, int]],
    sizes: Mapping[str, Size],
    need: Need,
    *,
    now: Mapping[str, int],
    gpus: int,
) -> Slots:
    """`gpus`: of one slot."""
    layouts = [{name: number * gpus for name, number in one.items()} for one in on_gpu]
    room: Size = (card.compute_slices * gpus, card.memory_slices * gpus)
    return Slots(layouts, need, now=now, sizes=sizes, room=room)


def _on_gpu(card: MigCard, profiles: Mapping[str, MigProfile], is_single: bool) -> list[Mapping[str, int]]:
    """What one GPU can have: with strategy single instances of one profile."""
    if is_single:
        return [*({name: one.most} for name, one in profiles.items()), {WHOLE: 1}]
    return [*(dict(Counter(profiles_of(one))) for one in full_layouts(card, profiles)), {WHOLE: 1}]


class _Planner:
    def __init__(
        self,
        card: MigCard,
        profiles: Mapping[str, MigProfile],
        on_gpu: Sequence[Mapping[str, int]],
        nodes: Sequence[SetNode],
        need: Need,
        is_single: bool,
    ) -> None:
        self.card, self.nodes, self.need, self.is_single = (
            card,
            sorted(nodes, key=lambda one: one.name),
            need,
            is_single,
        )
        self.sizes = _sizes(card, profiles)
        gpus = nodes[0].gpus if is_single and nodes else 1
        self.on_gpu = on_gpu
        now = sum((Counter(one.offers) for one in nodes), Counter())
        self.slots = _slots(card, on_gpu, self.sizes, need, now=now, gpus=gpus)
        self.held = [self.slots.supply(one.offers) for one in self.nodes]
        self.held_by_all = [sum(held[at] for held in self.held) for at in range(len(self.slots.names))]
        self.sizes_of = [1 if is_single else one.gpus for one in self.nodes]
        # One bit for each run: many candidates are compared by the number of theirs.
        bits = {run: 1 << at for at, run in enumerate(frozenset().union(*(one.runs for one in self.nodes)))}
        self.runs = [sum(bits[run] for run in one.runs) for one in self.nodes]
        self.budget = Budget(_STATES_LIMIT, _STEPS_LIMIT)
        # So many changed nodes may do it as well, for all that was tried.
        self.untried_from = len(self.nodes)

    def plan(self) -> SetPlan:
        every: Chosen = tuple(range(len(self.nodes)))
        best, filling = every, self._fill(every)
        rank = self._rank(best, filling)
        # Layouts of all GPUs can be what the nodes have now: no choice of nodes serves more.
        most = filling.value if filling.is_proven else self._bound(every)
        least = self._fewest_possible(filling.value)
        for chosen in self._candidates():
            number = len(chosen)
            if number > len(best) and filling.value >= most:
                break
            kept, slots = self._state(chosen)
            bound = self.slots.bound(kept, slots)
            if bound < filling.value or (bound == filling.value and number > len(best)):
                continue
            found = self.slots.fill(kept, slots, self.budget)
            if not found.is_proven and found.value < bound:
                self.untried_from = min(self.untried_from, number)
            if found.value >= filling.value and (ranked := self._rank(chosen, found)) < rank:
                best, filling, rank = chosen, found, ranked
        plans = self._assigned(best, filling)
        changed = sum(one.is_changed for one in plans)
        is_best = filling.value >= most
        is_fewest = is_best and (changed <= least or changed <= self.untried_from)
        is_known = most // self.slots.weight == filling.value // self.slots.weight
        return SetPlan(
            nodes=plans,
            need=self.need,
            stranded=self._stranded(plans),
            is_best=is_best,
            at_most=most % self.slots.weight if is_known else self.slots.weight - 1,
            is_fewest=is_fewest,
            changes_least=changed if is_fewest else min(least, changed),
        )

    def _rank(self, chosen: Chosen, found: Filling) -> tuple[int, int, int, Chosen]:
        runs = 0
        for at in chosen:
            runs |= self.runs[at]
        return -found.value, len(chosen), runs.bit_count(), chosen

    def _state(self, chosen: Chosen) -> tuple[Supply, int]:
        """What the other nodes have, and the slots of these."""
        left = list(self.held_by_all)
        for held, number in Counter(map(self.held.__getitem__, chosen)).items():
            for at, n in enumerate(held):
                left[at] -= n * number
        return tuple(map(min, left, self.slots.caps)), self._slots_of(chosen)

    def _slots_of(self, chosen: Chosen) -> int:
        return sum(self.sizes_of[at] for at in chosen)

    def _fill(self, chosen: Chosen) -> Filling:
        return self.slots.fill(*self._state(chosen), self.budget)

    def _bound(self, chosen: Chosen) -> int:
        return self.slots.bound(*self._state(chosen))

    def _fewest_possible(self, value: int) -> int:
        """No fewer changed nodes reach the value: as if a changed node also kept what it has."""
        sizes = sorted(self.sizes_of, reverse=True)
        kept, _none = self._state(())
        return next(
            (n for n in range(len(sizes)) if self.slots.bound(kept, sum(sizes[:n])) >= value),
            len(sizes),
        )

    def _candidates(self) -> Iterator[Chosen]:
        """Sets of nodes, the smaller first."""
        if len(self.nodes) <= _SUBSETS_NODES:
            for number in range(len(self.nodes) + 1):
                yield from combinations(range(len(self.nodes)), number)
            return
        alike: dict[tuple[int, tuple[int, ...]], list[int]] = {}
        for at, held in enumerate(self.held):
            alike.setdefault((self.sizes_of[at], held), []).append(at)
        kinds = [sorted(found, key=lambda at: (len(self.nodes[at].runs), at)) for found in alike.values()]
        if prod(len(found) + 1 for found in kinds) <= _MIXES_LIMIT:
            for mix in sorted(product(*(range(len(found) + 1) for found in kinds)), key=sum):
                yield tuple(sorted(at for found, number in zip(kinds, mix, strict=True) for at in found[:number]))
            return
        self.untried_from = 0
        yield ()
        yield from self._fewer(kinds)

    def _fewer(self, kinds: Sequence[Sequence[int]]) -> Iterator[Chosen]:
        """From all nodes, without one after the other as long as nothing is lost: those with the most runs first."""
        chosen = set(range(len(self.nodes)))
        value = self._fill(tuple(sorted(chosen))).value
        for at in sorted(chosen, key=lambda one: (-len(self.nodes[one].runs), one)):
            fewer = tuple(sorted(chosen - {at}))
            if self._bound(fewer) >= value and self._fill(fewer).value >= value:
                value = self._fill(fewer).value
                chosen.discard(at)
                yield fewer

    def _assigned(self, chosen: Chosen, filling: Filling) -> tuple[NodePlan, ...]:
        """Nodes with one layout first, so that many have the same. GPUs that nothing is needed of get the layout that
        most have.
        """
        left = Counter(dict(filling.chosen))
        found: dict[int, NodePlan] = {}
        if filling.chosen:
            spare = self._slots_of(chosen) - left.total()
            left[filling.chosen[0][0]] += max(0, spare)
            for at in sorted(chosen, key=lambda one: (-self.sizes_of[one], self.nodes[one].name)):
                found[at] = self._node_plan(at, _taken(left, self.sizes_of[at]))
        return tuple(found.get(at) or NodePlan(one, (), one.offers) for at, one in enumerate(self.nodes))

    def _node_plan(self, at: int, taken: Mapping[int, int]) -> NodePlan:
        node = self.nodes[at]
        gpus = node.gpus if self.is_single else 1
        groups: Groups = [(self.on_gpu[index], number * gpus) for index, number in taken.items()]
        offers: Counter[str] = Counter()
        for instances, number in groups:
            for name, count in instances.items():
                offers[name] += count * number
        if offers == Counter({name: n for name, n in node.offers.items() if n}):
            return NodePlan(node, (), node.offers)
        return NodePlan(node, groups, offers)

    def _stranded(self, plans: Sequence[NodePlan]) -> int:
        slices = sum(one.node.gpus for one in plans) * self.card.memory_slices
        return slices - sum(self.sizes[name][1] * n for one in plans for name, n in one.offers.items())


def _taken(left: Counter[int], slots: int) -> dict[int, int]:
    """Takes the layouts of one node from `left`: one alone if it suffices, the rarest of those that do."""
    enough = [(number, index) for index, number in left.items() if number >= slots]
    taken: dict[int, int] = {}
    if enough:
        taken = {min(enough)[1]: slots}
    else:
        for index, number in left.most_common():
            if number and slots:
                taken[index] = min(number, slots)
                slots -= taken[index]
    left.subtract(taken)
    return taken
