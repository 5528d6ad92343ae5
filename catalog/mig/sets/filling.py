"""The layouts with which a number of equal slots serve a need best, beside what is there already. Pure.

A slot is what gets one layout: a GPU, or a node if its MIG strategy is single. The value of instances is separable by
profile and each further instance is worth as much as the one before or less. So what a number of slots gains is at
most the gain of the best layout from where the search is, times their number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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
    """`left`: states that searches may still look at; each at most half of what is left. `steps`: of the first results
    that are taken before a search.
    """

    def __init__(self, states: int, steps: int) -> None:
        self.left = states
        self.steps = steps

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
        # For each profile (until so many, each is worth).
        self._worths = [
            ((kept, self.weight_kept), (granted, self.weight), (wanted, 1))
            for kept, granted, wanted in zip(self.kept, self.granted, self.wanted, strict=True)
        ]
        self._ends = [sorted(until for until, _worth in worths) for worths in self._worths]
        self._steps = [self._by_worth(sizes, axis) for axis in (0, 1)]
        self._parts = {held: [(at, n) for at, n in enumerate(held) if n] for _index, held in self.layouts}
        self._known: dict[tuple[Supply, int], Filling] = {}

    def supply(self, offers: Mapping[str, int]) -> Supply:
        return tuple(min(offers.get(name, 0), cap) for name, cap in zip(self.names, self.caps, strict=True))

    def value(self, supply: Supply) -> int:
        return sum(
            self.weight_kept * min(n, kept) + self.weight * min(n, granted) + min(n, wanted)
            for n, kept, granted, wanted in zip(supply, self.kept, self.granted, self.wanted, strict=True)
        )

    def gain(self, supply: Supply, held: Supply) -> int:
        """By what the value grows if one more slot has the layout."""
        gained = 0
        for at, more in self._parts[held]:
            now = supply[at]
            for until, worth in self._worths[at]:
                if now < until:
                    gained += worth * min(more, until - now)
        return gained

    def repeats(self, supply: Supply, held: Supply) -> int:
        """So many more slots with the layout gain as much as the next one, at least."""
        found = [
            (end - supply[at]) // more
            for at, more in self._parts[held]
            if (end := next((one for one in self._ends[at] if one > supply[at]), 0))
        ]
        return max(1, min(found, default=1))

    def bound(self, supply: Supply, slots: int) -> int:
        """No layouts of the slots reach more beside this supply."""
        base = self.value(supply)
        if not slots:
            return base
        best = max((self.gain(supply, held) for _index, held in self.layouts), default=0)
        room = min(self.packed(supply, slots, axis) for axis in (0, 1))
        return min(base + best * slots, base + room, self.value(self.caps))

    def fill(self, supply: Supply, slots: int, budget: Budget) -> Filling:
        key = (supply, slots)
        if key not in self._known:
            self._known[key] = _SlotSearch(self, supply, slots, budget).found
        return self._known[key]

    def reaches(self, value: int, slots: int, budget: Budget) -> bool | None:
        """Whether layouts of the slots, with nothing beside them, have the value; None: the search was cut short."""
        supply = self.supply({})
        if self.bound(supply, slots) < value:
            return False
        found = _SlotSearch(self, supply, slots, budget, above=value - 1).found
        return True if found.value >= value else False if found.is_proven else None

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

    def added(self, supply: Supply, held: Supply, number: int = 1) -> Supply:
        return tuple(min(now + more * number, cap) for now, more, cap in zip(supply, held, self.caps, strict=True))

    def _by_worth(self, sizes: Mapping[str, Size], axis: int) -> list[tuple[Fraction, int, int, int, int, int]]:
        """(worth of a slice, profile, from, to, worth of an instance, its slices): instances of equal worth."""
        found = []
        for at, name in enumerate(self.names):
            size = sizes[name][axis]
            worths = self._worths[at]
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
    """Depth first, the most gain first. Orders of the same layouts lead to the same supply, which is searched once.
    `above`: no smaller or equal value is of interest.
    """

    def __init__(self, of: Slots, supply: Supply, slots: int, budget: Budget, *, above: int = 0) -> None:
        self.of, self.budget, self.stops_at = of, budget, budget.left - budget.half()
        self.seen: set[tuple[Supply, int]] = set()
        self.value = max(of.value(supply), above)
        self.chosen: Counter[int] = Counter()
        self.is_cut = False
        self.most = of.bound(supply, slots)
        self._dive(supply, slots)
        if self.value < self.most:
            self._search(supply, slots)
        chosen = tuple(sorted(self.chosen.items(), key=lambda one: (-one[1], one[0])))
        self.found = Filling(self.value, chosen, self.value >= self.most or not self.is_cut)

    def _dive(self, supply: Supply, slots: int) -> None:
        """The best layout again and again: a first result, also where nothing is left to search."""
        chosen: Counter[int] = Counter()
        value = self.of.value(supply)
        while slots and self.of.layouts and self.budget.steps > 0:
            self.budget.steps -= 1
            gain, index, held = self._gains(supply)[0]
            if gain <= 0:
                break
            number = min(slots, self.of.repeats(supply, held))
            supply, value, slots = self.of.added(supply, held, number), value + gain * number, slots - number
            chosen[-index] += number
        if value > self.value:
            self.value, self.chosen = value, chosen

    def _gains(self, supply: Supply) -> list[tuple[int, int, Supply]]:
        """(gain, negative index, what the layout has), the most gain first."""
        return sorted(((self.of.gain(supply, held), -index, held) for index, held in self.of.layouts), reverse=True)

    def _search(self, supply: Supply, slots: int) -> None:
        """With a stack of its own: a set can have more slots than Python has frames."""
        path: list[int] = []
        open_states = [self._following(path, supply, slots)]
        while open_states:
            following = next(open_states[-1], None)
            if following is None:
                open_states.pop()
                # The first state has no layout that led to it.
                del path[-1:]
            else:
                index, supply, slots = following
                path.append(index)
                open_states.append(self._following(path, supply, slots))

    def _following(self, path: Sequence[int], supply: Supply, slots: int) -> Iterator[tuple[int, Supply, int]]:
        """(index of a layout, supply, slots that are left), each after all that follows the one before is searched."""
        value = self.of.value(supply)
        if value > self.value:
            self.value, self.chosen = value, Counter(path)
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
        for gain, index, held in self._gains(supply):
            if gain <= 0 or value + slots * gain <= self.value:
                return
            yield -index, self.of.added(supply, held), slots - 1
