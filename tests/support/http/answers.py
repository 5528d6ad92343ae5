"""Answers of the API, compared."""

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
    """What a door said: "" for done. Not every door has everything; None: this one does not say it."""

    status: int | None = None
    code: str | None = None
    sentence: str | None = None


DONE = Answer()


def answers_agree(door: str, said: Answer, reference: Answer, *, page_conflict: tuple[int, ...] = (409,)) -> bool:
    """Every door says the sentence, the API the code as well; a page has one of `page_conflict` for a 409."""
    if DONE in (said, reference):
        return said == reference
    if door == "command":
        return said.sentence == reference.sentence
    if door == "API":
        return said == reference
    assert said.sentence is not None
    assert reference.sentence is not None
    statuses = page_conflict if reference.status == 409 else (reference.status,)
    # What is not there has a page of its own.
    return said.status in statuses and (reference.status == 404 or reference.sentence in said.sentence)


def raced(verbs: list[Callable[[], Any]]) -> list[str]:
    """All start together, each on a connection of its own; "" or the code of the refusal, in the verbs' order."""
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
