"""Output for the person at the keyboard: steps with elapsed time, and problems with what to do."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

_began = time.monotonic()
_stream: TextIO | None = None  # None: standard output as it is at that moment


class UserError(Exception):
    """One sentence that says what is wrong, and one that says what to do now."""

    def __init__(self, sentence: str, way_on: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.way_on = way_on


def write_to(stream: TextIO) -> None:
    """For commands whose standard output is for programs."""
    global _stream
    _stream = stream


def say(text: str = "") -> None:
    print(text, file=_stream, flush=True)


def elapsed(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"


def note(text: str) -> None:
    """One line with the time since the command began."""
    say(f"[{elapsed(time.monotonic() - _began):>12}] {text}")


@contextmanager
def step(what: str) -> Iterator[None]:
    """Says `what` and how long it took; a failed step is named by the problem itself."""
    began = time.monotonic()
    yield
    note(f"{what} ({elapsed(time.monotonic() - began)})")


def print_error(problem: UserError) -> None:
    print(f"\n{problem.sentence}\n{problem.way_on}", file=sys.stderr, flush=True)
