"""The parts of a recommendation."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True)
class RecommendedClass:
    """`start`: a sentence about when it would start; `at_once`: it starts now. `why`: when to prefer it (runner-up)."""

    slug: str
    name: str
    units: int
    unit: str
    at_once: bool
    start: str
    price: Decimal
    why: str = ""


@dataclass(frozen=True)
class RuledOutClass:
    slug: str
    name: str
    why: str


@dataclass(frozen=True)
class Recommendation:
    """`best` None: no class here fits, and `end` and `end_text` explain what to change. `end` is also set if sharing
    was accepted and does not suit. `starts_now`: the first suitable class that would start immediately, the best one if
    it can. `trade_off` follows the words "The price of it".
    """

    best: RecommendedClass | None
    runner_up: RecommendedClass | None
    starts_now: RecommendedClass | None
    reasons: tuple[str, ...]
    trade_off: str
    end: str
    end_text: str
    ruled_out: tuple[RuledOutClass, ...]
