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
