"""Compares answers of page, API and command."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, OperationalError

from portal.core.errors import Refused, to_refusal
from tests.support.threads import in_threads


@dataclass(frozen=True)
class Answer:
    """The answer of one interface (page, API, command); DONE means success. None: this interface does not give the
    value.
    """

    status: int | None = None
    code: str | None = None
    sentence: str | None = None


DONE = Answer()


def answers_agree(door: str, said: Answer, reference: Answer, *, page_conflict: tuple[int, ...] = (409,)) -> bool:
    """Every interface gives the sentence, the API also the code; a page has one of `page_conflict` for a 409."""
    if DONE in (said, reference):
        return said == reference
    if door == "command":
        return said.sentence == reference.sentence
    if door == "API":
        return said == reference
    assert said.sentence is not None
    assert reference.sentence is not None
    statuses = page_conflict if reference.status == 409 else (reference.status,)
    # A 404 has a page of its own, without the sentence.
    return said.status in statuses and (reference.status == 404 or reference.sentence in said.sentence)


def raced(verbs: list[Callable[[], Any]]) -> list[str]:
    """Starts all verbs together, each on its own connection. Returns "" or the refusal code of each, in the verbs'
    order.
    """
    start = threading.Barrier(len(verbs))
    answers = [""] * len(verbs)

    def run(index: int) -> Callable[[], None]:
        def verb() -> None:
            start.wait(30)
            try:
                verbs[index]()
            except (Refused, IntegrityError, OperationalError) as error:
                refusal = to_refusal(error)
                if refusal is None:
                    raise
                answers[index] = refusal.code

        return verb

    in_threads(0, lambda: None, *[run(index) for index in range(len(verbs))])
    return answers
