"""The catalog's three pages, from the address and the person to what their templates show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict

from accounts.actor import Actor
from desk.forms import DEFAULTS, Questions
from desk.queries.advice import Answer, answer
from desk.queries.cards import Card, catalog_of, compared
from desk.queries.shelf import Shelf, shelf

THREE = ("mem", "iso", "how")


def catalog(query: QueryDict, *, by: Actor) -> dict[str, Any]:
    found = shelf(by)
    shown = catalog_of(found, only=query.get("only", ""))
    form = Questions.asked(_only_three(query))
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
    found = shelf(by)
    shown = catalog_of(found)
    form = Questions.asked(query)
    return {
        "catalog": shown,
        "form": form,
        "answer": _answer(form, found, shown.every),
        "answers": urlencode({name: form.data.get(name, DEFAULTS[name]) for name in THREE}),
    }


def compare(slugs: Sequence[str], *, by: Actor) -> dict[str, Any]:
    shown = catalog_of(shelf(by))
    chosen = [card for card in shown.every if card.slug in slugs] or shown.every
    figures, contracts = compared(chosen)
    return {"catalog": shown, "chosen": chosen, "figures": figures, "contracts": contracts, "is_chosen": bool(slugs)}


def _answer(form: Questions, found: Shelf, cards: Sequence[Card]) -> Answer | None:
    return answer(form.needs(), found, cards) if form.is_valid() else None


def _only_three(query: QueryDict) -> QueryDict:
    """Other answers in an address belong to the page of all questions, and would work unseen here."""
    found = QueryDict(mutable=True)
    for name in THREE:
        if name in query:
            found[name] = str(query[name])
    return found
