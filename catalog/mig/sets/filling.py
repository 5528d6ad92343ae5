"""The layouts with which a number of equal slots serve a need best, beside what is there already. Pure.

A slot is what gets one layout: a GPU, or a node if its MIG strategy is single. The value of instances is separable by
profile and each further instance is worth as much as the one before or less. So what a number of slots gains is at
most the gain of the best layout from where the search is, times their number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from catalog.mig.sets.types import Need

Supply = tuple[int, ...]
# Slices of compute and memory.
Size = tuple[int, int]


@dataclass(frozen=True)
class Filling:
    """`chosen`: (index of a layout, number of slots). `is_proven`: no other layouts have a higher value."""

    value: int
    chosen: tuple[tuple[int, int], ...]
    is_proven: bool


class Budget:
    """States that searches may still look at; each at most half of what is left."""

    def __init__(self, states: int) -> None:
        self.left = states

    def half(self) -> int:
        return self.left // 2


class Slots:
    """`layouts`: instances by profile of one slot. `now`: those that exist before anything changes. `sizes`: of one
    instance, `room`: of a slot.
    """

    def __init__(
        self,
        layouts: Sequence[Mapping[str, int]],
        need: Need,
        *,
        now: Mapping[str, int],
        sizes: Mapping[str, Size],
        room: Size,
    ) -> None:
        most = Counter(need.wanted) | Counter(need.granted)
        self.names = sorted(name for name, number in most.items() if number > 0)
        self.wanted = tuple(need.wanted.get(name, 0) for name in self.names)
        self.granted = tuple(need.granted.get(name, 0) for name in self.names)
        self.kept = tuple(min(n, now.get(name, 0)) for n, name in zip(self.granted, self.names, strict=True))
        self.caps = tuple(map(max, self.wanted, self.granted))
        # One granted instance is worth more than all wanted ones; one that exists more than all other granted ones.
        self.weight = sum(self.wanted) + 1
        self.weight_kept = self.weight * (sum(self.granted) + 1)
        self.room = room
        self.layouts = self._useful(layouts)
        self._steps = [self._by_worth(sizes, axis) for axis in (0, 1)]
        self._known: dict[tuple[Supply, int], Filling] = {}

    def supply(self, offers: Mapping[str, int]) -> Supply:
        return tuple(min(offers.get(name, 0), cap) for name, cap in zip(self.names, self.caps, strict=True))

    def value(self, supply: Supply) -> int:
        return sum(
            self.weight_kept * min(n, kept) + self.weight * min(n, granted) + min(n, wanted)
            for n, kept, granted, wanted in zip(supply, self.kept, self.granted, self.wanted, strict=True)
        )

    def bound(self, supply: Supply, slots: int) -> int:
        """No layouts of the slots reach more beside this supply."""
        base = self.value(supply)
        if not slots:
            return base
        best = max((self.value(self.added(supply, held)) - base for _index, held in self.layouts), default=0)
        room = min(self.packed(supply, slots, axis) for axis in (0, 1))
        return min(base + best * slots, base + room, self.value(self.caps))

    def fill(self, supply: Supply, slots: int, budget: Budget) -> Filling:
        key = (supply, slots)
        if key not in self._known:
            self._known[key] = _SlotSearch(self, supply, slots, budget).found
        return self._known[key]

    def _useful(self, layouts: Sequence[Mapping[str, int]]) -> list[tuple[int, Supply]]:
        """Without layouts of which another has as much and more of what is needed."""
        found: dict[Supply, int] = {}
        for index, one in enumerate(layouts):
            held = self.supply(one)
            if any(held):
                found.setdefault(held, index)
        return [
            (index, held)
            for held, index in found.items()
            if not any(other != held and all(map(int.__le__, held, other)) for other in found)
        ]

    def added(self, supply: Supply, held: Supply) -> Supply:
        return tuple(map(min, map(int.__add__, supply, held), self.caps))

    def _by_worth(self, sizes: Mapping[str, Size], axis: int) -> list[tuple[Fraction, int, int, int, int, int]]:
        """(worth of a slice, profile, from, to, worth of an instance, its slices): instances of equal worth."""
        found = []
        for at, name in enumerate(self.names):
            size = sizes[name][axis]
            worths = ((self.kept[at], self.weight_kept), (self.granted[at], self.weight), (self.wanted[at], 1))
            for low, high in pairwise(sorted({0, *(until for until, _worth in worths)})):
                worth = sum(one for until, one in worths if high <= until)
                found.append((Fraction(worth, size), at, low, high, worth, size))
        return sorted(found, reverse=True)

    def packed(self, supply: Supply, slots: int, axis: int) -> int:
        """The most that is gained if instances could be cut to fill the slices of all slots."""
        left, gained = self.room[axis] * slots, 0
        for _ratio, at, low, high, worth, size in self._steps[axis]:
            number = high - max(low, supply[at])
            if number <= 0:
                continue
            if number * size >= left:
                return gained + -(-left * worth // size)
            gained += number * worth
            left -= number * size
        return gained


class _SlotSearch:
    """Depth first, the most gain first. Orders of the same layouts lead to the same supply, which is searched once."""

    def __init__(self, of: Slots, supply: Supply, slots: int, budget: Budget) -> None:
        self.of, self.budget, self.stops_at = of, budget, budget.left - budget.half()
        self.seen: set[tuple[Supply, int]] = set()
        self.value = of.value(supply)
        self.chosen: tuple[int, ...] = ()
        self.is_cut = False
        self.most = of.bound(supply, slots)
        self._dive(supply, slots)
        if self.value < self.most:
            self._try((), supply, slots)
        counts: Counter[int] = Counter(self.chosen)
        chosen = tuple(sorted(counts.items(), key=lambda one: (-one[1], one[0])))
        self.found = Filling(self.value, chosen, self.value >= self.most or not self.is_cut)

    def _dive(self, supply: Supply, slots: int) -> None:
        """The best layout again and again: a first result, whatever the budget."""
        chosen: list[int] = []
        value = self.of.value(supply)
        while slots:
            gain, index, held = self._gains(supply, value)[0] if self.of.layouts else (0, 0, supply)
            if gain <= 0:
                break
            while slots and self.of.value(self.of.added(supply, held)) - value >= gain:
                supply, value, slots = self.of.added(supply, held), value + gain, slots - 1
                chosen.append(-index)
        if value > self.value:
            self.value, self.chosen = value, tuple(chosen)

    def _gains(self, supply: Supply, value: int) -> list[tuple[int, int, Supply]]:
        """(gain, negative index, what the layout has), the most gain first."""
        found = ((self.of.value(self.of.added(supply, held)) - value, -index, held) for index, held in self.of.layouts)
        return sorted(found, reverse=True)

    def _try(self, chosen: tuple[int, ...], supply: Supply, slots: int) -> None:
        value = self.of.value(supply)
        if value > self.value:
            self.value, self.chosen = value, chosen
        if slots == 0 or (supply, slots) in self.seen or self.value >= self.most:
            return
        if self.budget.left <= self.stops_at:
            self.is_cut = True
            return
        self.budget.left -= 1
        self.seen.add((supply, slots))
        packed = min(self.of.packed(supply, slots, axis) for axis in (0, 1))
        if value + packed <= self.value:
            return
        for gain, index, held in self._gains(supply, value):
            if gain <= 0 or value + slots * gain <= self.value:
                return
            self._try((*chosen, -index), self.of.added(supply, held), slots - 1)
