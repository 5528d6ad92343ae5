"""The result of "Help me choose" for one user: the recommendation, with links to the recommended classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from catalog.guide.recommendation import recommend as advise
from catalog.guide.requirements import INTERACTIVE, Requirements
from catalog.guide.types import Recommendation as Advice
from catalog.guide.types import RecommendedClass as Choice
from cluster.manifests.run_spec import JOB, NOTEBOOK
from desk.catalog.cards import ClassCard, money
from desk.catalog.queries import CatalogData
from portal.ui.text import plural
from workloads.launch.form.links import write_link


@dataclass(frozen=True)
class RecommendedClass:
    """A recommended class. `size`: "1 slice", "2 GPUs", "2 workers of 8 GPUs". `launch_href`: the launch form with
    these units and workers, `request_href` the form for as much quota; "" without a team.
    """

    choice: Choice
    card: ClassCard
    size: str
    price: str
    launch_href: str
    request_href: str


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
        return None if choice is None else _advised(choice, by_slug[choice.slug], needs)

    is_sooner = found.starts_now and found.best and found.starts_now.slug != found.best.slug
    return Recommendation(
        found, advised(found.best), advised(found.runner_up), advised(found.starts_now) if is_sooner else None
    )


def _advised(choice: Choice, card: ClassCard, needs: Requirements) -> RecommendedClass:
    size = plural(choice.units, choice.unit)
    if choice.workers > 1:
        size = f"{choice.workers} workers of {size}"
    total = choice.price * choice.units * choice.workers
    price = f"{money(total)} per hour" if total else "free of charge"
    request_href = f"{card.request_href}&units={choice.units * choice.workers}" if card.request_href else ""
    return RecommendedClass(choice, card, size, price, _launch_href(choice, card, needs), request_href)


def _launch_href(choice: Choice, card: ClassCard, needs: Requirements) -> str:
    """With the class, units and workers filled in; a notebook needs nothing more than its class."""
    kind = NOTEBOOK if needs.work == INTERACTIVE else JOB
    chosen = write_link({"units": choice.units, "workers": choice.workers, "kind": kind})
    return f"{card.launch_href}&{chosen}" if card.launch_href else ""
