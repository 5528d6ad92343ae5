"""The parts of a recommendation."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True)
class RecommendedClass:
    """`units` on one node for each of `workers`, which are several if one node does not have all GPUs. `start`: a
    sentence about when it would start; `at_once`: it starts now. `why`: when to prefer it (runner-up).
    """

    slug: str
    name: str
    units: int
    unit: str
    at_once: bool
    start: str
    price: Decimal
    why: str = ""
    workers: int = 1


@dataclass(frozen=True)
class OtherClass:
    """A class that is not recommended. `fits`: it could run the workload, and another class is preferred."""

    slug: str
    name: str
    fits: bool
    why: str


@dataclass(frozen=True)
class Recommendation:
    """`best` None: no class here fits, and `end` and `end_text` explain what to change. `end` is also set if sharing
    was accepted and does not suit. `starts_now`: the first suitable class that would start immediately, the best one if
    it can. `trade_off` follows the words "The price of it". `others`: all other classes, each with the reason against
    it; those that fit first, best first, then those that come nearest.
    """

    best: RecommendedClass | None
    runner_up: RecommendedClass | None
    starts_now: RecommendedClass | None
    reasons: tuple[str, ...]
    trade_off: str
    end: str
    end_text: str
    others: tuple[OtherClass, ...]
