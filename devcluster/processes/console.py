"""Messages for the user of the terminal: steps with their duration, and errors with what to do next."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

_began = time.monotonic()
_stream: TextIO | None = None  # None: standard output


class UserError(Exception):
    """An error for the user: one sentence with the problem, and one with what to do now."""

    def __init__(self, sentence: str, way_on: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.way_on = way_on


def write_to(stream: TextIO) -> None:
    """Sends messages to another stream, for commands whose standard output is read by programs."""
    global _stream
    _stream = stream


def say(text: str = "") -> None:
    print(text, file=_stream, flush=True)


def elapsed(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"


def note(text: str) -> None:
    """Prints one line, with the time since the start of the command."""
    say(f"[{elapsed(time.monotonic() - _began):>12}] {text}")


@contextmanager
def step(what: str) -> Iterator[None]:
    """Prints `what` and its duration when the block has ended. Prints nothing if it failed, because the error is
    printed.
    """
    began = time.monotonic()
    yield
    note(f"{what} ({elapsed(time.monotonic() - began)})")


def print_error(problem: UserError) -> None:
    print(f"\n{problem.sentence}\n{problem.way_on}", file=sys.stderr, flush=True)
