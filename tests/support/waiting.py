"""Waiting for what no event announces, with a deadline; no test sleeps for a fixed time.

A deadline bounds what hangs. It is no measure of speed: test processes and a control plane share a small machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")


# To look again costs a query, a call of the API or a page: that takes a third of the time at most, unless it would be
# done less than four times a second.
SELDOM_S, OFTEN_S = 0.25, 0.05


def wait_until(
    condition: Callable[[], Answer],
    *,
    within_s: float = 60.0,
    every_s: float | None = None,
    what: str = "",
    story: Callable[[], str] = str,
) -> Answer:
    """The first true answer. Fails after `within_s` with the last answer, and with what `story` has to say then."""
    started = time.monotonic()
    deadline = started + within_s
    while not (answer := condition()):
        now = time.monotonic()
        assert now < deadline, f"not within {within_s:g} s: {what} (last {answer!r})\n{story()}"
        time.sleep(every_s or min(SELDOM_S, max(OFTEN_S, 2 * (now - started))))
        started = time.monotonic()
    return answer
