"""The result of "Help me choose" for one user: the recommendation, with links to the recommended classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from catalog.guide.recommendation import recommend as advise
from catalog.guide.requirements import Requirements
from catalog.guide.types import Recommendation as Advice
from catalog.guide.types import RecommendedClass as Choice
from desk.catalog.cards import ClassCard, money
from desk.catalog.queries import CatalogData
from portal.ui.text import plural


@dataclass(frozen=True)
class RecommendedClass:
    """A recommended class. `size`: "1 slice", "2 GPUs"."""

    choice: Choice
    card: ClassCard
    size: str
    price: str


@dataclass(frozen=True)
class Recommendation:
    """`sooner`: a class that would start now, if the best class would not."""

    advice: Advice
    best: RecommendedClass | None
    runner_up: RecommendedClass | None
    sooner: RecommendedClass | None


def recommend(needs: Requirements, shelf: CatalogData, cards: Sequence[ClassCard]) -> Recommendation:
    found = advise(needs, shelf.options())
    by_slug = {card.slug: card for card in cards}

    def advised(choice: Choice | None) -> RecommendedClass | None:
        return None if choice is None else _advised(choice, by_slug[choice.slug])

    is_sooner = found.starts_now and found.best and found.starts_now.slug != found.best.slug
    return Recommendation(
        found, advised(found.best), advised(found.runner_up), advised(found.starts_now) if is_sooner else None
    )


def _advised(choice: Choice, card: ClassCard) -> RecommendedClass:
    size = plural(choice.units, choice.unit)
    if not choice.price:
        return RecommendedClass(choice, card, size, "free of charge")
    total = choice.price * choice.units
    return RecommendedClass(choice, card, size, f"{money(total)} per hour")
