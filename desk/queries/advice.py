"""What the questions are answered with for one person: the advice, with the doors to what is advised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from catalog.advice import Advice, Choice, advise
from catalog.needs import Needs
from desk.queries.cards import Card, money
from desk.queries.shelf import Shelf
from portal.quota_bar import plural


@dataclass(frozen=True)
class Advised:
    """A class that is advised. `size`: "one slice", "2 cards"."""

    choice: Choice
    card: Card
    size: str
    price: str


@dataclass(frozen=True)
class Answer:
    """`sooner`: what would start this second, where the best one does not."""

    advice: Advice
    best: Advised | None
    runner_up: Advised | None
    sooner: Advised | None


def answer(needs: Needs, shelf: Shelf, cards: Sequence[Card]) -> Answer:
    found = advise(needs, shelf.options())
    by_slug = {card.slug: card for card in cards}

    def advised(choice: Choice | None) -> Advised | None:
        return None if choice is None else _advised(choice, by_slug[choice.slug])

    is_sooner = found.starts_now and found.best and found.starts_now.slug != found.best.slug
    return Answer(
        found, advised(found.best), advised(found.runner_up), advised(found.starts_now) if is_sooner else None
    )


def _advised(choice: Choice, card: Card) -> Advised:
    size = f"one {choice.unit}" if choice.units == 1 else plural(choice.units, choice.unit)
    if not choice.price:
        return Advised(choice, card, size, "free of charge")
    total = choice.price * choice.units
    return Advised(choice, card, size, f"{money(total)} per hour")
