"""Waiting for what no event announces, with a deadline; no test sleeps for a fixed time.

A deadline bounds what hangs. It is no measure of speed: test processes and a control plane share a small machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")


def wait_until(
    condition: Callable[[], Answer],
    *,
    within_s: float = 60.0,
    every_s: float = 0.05,
    what: str = "",
    story: Callable[[], str] = str,
) -> Answer:
    """The first true answer. Fails after `within_s` with the last answer, and with what `story` has to say then."""
    deadline = time.monotonic() + within_s
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"not within {within_s:g} s: {what} (last {answer!r})\n{story()}"
        time.sleep(every_s)
    return answer
