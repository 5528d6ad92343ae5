"""The order of the classes that fit, and why one comes after another. Pure.

Fit comes first, then price: a class that fits is not better for having more memory. The order is a list of criteria,
and the reason against a class is the first criterion in which it comes after the recommended one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from catalog.contract.types import gib_apart
from catalog.guide.reasons import INTERCONNECT_NAMES, borrows, may_use, start_estimate
from catalog.guide.requirements import INTERACTIVE, INTERCONNECT, SERVING, ClassOption, Requirements, split_over

INTERCONNECT_RANK = {"nvswitch": 0, "nvlink": 1, "unknown": 2, "pcie": 3}


@dataclass(frozen=True)
class Criterion:
    """`key`: lower is better. `why`: a sentence against the second of two classes, after "It fits, but"."""

    key: Callable[[ClassOption, Requirements], Any]
    why: Callable[[ClassOption, ClassOption, Requirements], str]


@dataclass(frozen=True)
class Ranking:
    """The order of the classes for one need."""

    needs: Requirements
    criteria: tuple[Criterion, ...]

    @classmethod
    def of(cls, needs: Requirements, options: Collection[ClassOption]) -> Ranking:
        """Of an unknown peak the smallest class comes before any that the team happens to hold. Prices decide only if
        all classes have one: of a class without a price nobody knows what it is worth.
        """
        soon = (_SOON,) if needs.soon else ()
        links = (_LINKS,) if needs.cards > 1 and needs.sensitive == INTERCONNECT else ()
        amount = (_PRICE, _SIZE) if all(one.price for one in options) else (_SIZE, _PRICE)
        if needs.memory_mib is None:
            return cls(needs, (_HELD, _FOREIGN, _SUITS, *links, _SIZE, _USABLE, *soon, _BORROWED, _PRICE))
        return cls(needs, (_HELD, _USABLE, *soon, _BORROWED, _FOREIGN, _SUITS, *links, *amount, _LINKS))

    def order(self, option: ClassOption) -> tuple[Any, ...]:
        return *(one.key(option, self.needs) for one in self.criteria), option.slug

    def fit(self, option: ClassOption) -> tuple[Any, ...]:
        """The order without what depends on the team and the moment."""
        return *(one.key(option, self.needs) for one in self.criteria if one not in _OF_THE_MOMENT), option.slug

    def against(self, best: ClassOption, other: ClassOption) -> str:
        """Why `best` comes before `other`: words after "It fits, but"; "" if nothing distinguishes them."""
        for one in self.criteria:
            if one.key(best, self.needs) != one.key(other, self.needs):
                return one.why(best, other, self.needs)
        return ""


# ---- criteria --------------------------------------------------------------------------------------------------------


def _suits(option: ClassOption, needs: Requirements) -> int:
    """Returns how well this kind of sharing suits this kind of work, if sharing is accepted: 0 is best."""
    steady = needs.small_processes or needs.work == SERVING
    if option.axes.sharing == "mps":
        return 0
    if option.axes.sharing == "time-slicing":
        return 0 if needs.work == INTERACTIVE and not needs.long and not steady else 2
    return 1


def _starts_later(option: ClassOption, needs: Requirements) -> bool:
    split = split_over(option, needs)
    return not start_estimate(option, split.units, split.workers)[0]


def _loses_work(option: ClassOption, needs: Requirements) -> bool:
    """A run that cannot resume loses all of its work when borrowed units are reclaimed."""
    return needs.resumes is False and borrows(option, needs.cards)


def _start(best: ClassOption, other: ClassOption, needs: Requirements) -> str:
    split = split_over(other, needs)
    return f"it does not start now. {start_estimate(other, split.units, split.workers)[1]}"


def _quota(best: ClassOption, other: ClassOption, needs: Requirements) -> str:
    if other.granted is None:
        return "launching needs a team."
    quota = f"your team's quota is {other.granted}" if other.granted else "your team has no quota for it"
    return f"{quota}, and {f'may borrow {other.borrowable}' if other.borrowable else 'borrowing is off'}."


def _sharing(best: ClassOption, other: ClassOption, needs: Requirements) -> str:
    if other.axes.sharing == "none":
        return "it is not shared, and the rest of it would be idle between your bursts."
    return "pauses while other pods compute do not suit this work."


def _size(best: ClassOption, other: ClassOption, needs: Requirements) -> str:
    if not other.axes.memory_mib or not best.axes.memory_mib:
        return "its nodes do not report its memory."
    has, instead = gib_apart(other.axes.memory_mib, best.axes.memory_mib)
    return f"it is larger: {has} of GPU memory instead of {instead}."


def _dearer(best: ClassOption, other: ClassOption, needs: Requirements) -> str:
    return f"it costs more: {_price(other.price)} per {other.unit} and hour, not {_price(best.price)}."


def _price(price: Decimal) -> str:
    return f"{price.normalize():f}" if price else "nothing"


def _links(best: ClassOption, other: ClassOption, needs: Requirements) -> str:
    name = INTERCONNECT_NAMES.get(other.interconnect)
    return f"its GPUs are connected by {name}." if name else "the interconnect of its GPUs is not known."


def _rank_of_links(option: ClassOption, needs: Requirements) -> int:
    return INTERCONNECT_RANK.get(option.interconnect, 2) if needs.cards > 1 else 0


_HELD = Criterion(lambda one, _: bool(one.held), lambda _best, one, _: f"scheduling is paused. {one.held}")
_USABLE = Criterion(lambda one, needs: not may_use(one, needs.cards), _quota)
_SOON = Criterion(_starts_later, _start)
_BORROWED = Criterion(
    _loses_work, lambda *_: "the run would use borrowed units, and it cannot resume when they are reclaimed."
)
_FOREIGN = Criterion(
    lambda one, needs: not needs.vendor and one.axes.vendor != "nvidia",
    lambda *_: "CUDA programs and images do not run on it.",
)
_SUITS = Criterion(_suits, _sharing)
_LINKS = Criterion(_rank_of_links, _links)
_PRICE = Criterion(lambda one, _: one.price, _dearer)
_SIZE = Criterion(lambda one, _: float(one.axes.memory_mib or "inf"), _size)
_OF_THE_MOMENT = (_HELD, _USABLE, _SOON, _BORROWED)
