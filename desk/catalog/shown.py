"""The context of the catalog's three templates, from the URL and the user."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict

from accounts.core.actor import Actor
from desk.catalog.cards import ClassCard, catalog_overview
from desk.catalog.comparison import compare_classes
from desk.catalog.forms import DEFAULTS, RequirementsForm
from desk.catalog.queries import CatalogData, catalog_data
from desk.catalog.recommendation import Recommendation, recommend

THREE = ("mem", "iso", "how")


def catalog(query: QueryDict, *, by: Actor) -> dict[str, Any]:
    found = catalog_data(by)
    shown = catalog_overview(found, only=query.get("only", ""))
    form = RequirementsForm.asked(_only_three(query))
    return {
        "catalog": shown,
        "form": form,
        "questions": [form[name] for name in THREE],
        "answer": _answer(form, found, shown.every),
        "answers": urlencode({name: form.data[name] for name in THREE}),
        "only": next(one.key for one in shown.filters if one.is_current),
        "is_answered": any(name in query for name in THREE),
    }


def choose(query: QueryDict, *, by: Actor) -> dict[str, Any]:
    found = catalog_data(by)
    shown = catalog_overview(found)
    form = RequirementsForm.asked(query)
    return {
        "catalog": shown,
        "form": form,
        "answer": _answer(form, found, shown.every),
        "answers": urlencode({name: form.data.get(name, DEFAULTS[name]) for name in THREE}),
    }


def compare(slugs: Sequence[str], *, by: Actor) -> dict[str, Any]:
    shown = catalog_overview(catalog_data(by))
    chosen = [card for card in shown.every if card.slug in slugs] or shown.every
    figures, contracts = compare_classes(chosen)
    return {"catalog": shown, "chosen": chosen, "figures": figures, "contracts": contracts, "is_chosen": bool(slugs)}


def _answer(form: RequirementsForm, found: CatalogData, cards: Sequence[ClassCard]) -> Recommendation | None:
    return recommend(form.needs(), found, cards) if form.is_valid() else None


def _only_three(query: QueryDict) -> QueryDict:
    """Other answers in the URL belong to the page with all questions, and would have an invisible effect here."""
    found = QueryDict(mutable=True)
    for name in THREE:
        if name in query:
            found[name] = str(query[name])
    return found
