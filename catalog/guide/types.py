"""The parts of a recommendation."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True)
class RecommendedClass:
    """`start`: a sentence about when it would start, `at_once` its gist. `why`: when to prefer it (runner-up)."""

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
    """`best` None: nothing here does it, `end` and `end_text` say what to change. `end` is also set where sharing was
    accepted and does not suit. `starts_now`: the first that suits and would start this second, the best one if it can.
    `trade_off` follows the words "The price of it".
    """

    best: RecommendedClass | None
    runner_up: RecommendedClass | None
    starts_now: RecommendedClass | None
    reasons: tuple[str, ...]
    trade_off: str
    end: str
    end_text: str
    ruled_out: tuple[RuledOutClass, ...]
