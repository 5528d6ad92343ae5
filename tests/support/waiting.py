"""Waits, with a deadline, for changes that no event announces; no test sleeps for a fixed time.

A deadline stops tests that hang. It does not measure speed: test processes and a control plane share a small machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")


# Each check costs a query, an API call or a page. Checks take a third of the time at most, but run at least four
# times a second.
SELDOM_S, OFTEN_S = 0.25, 0.05


def wait_until(
    condition: Callable[[], Answer],
    *,
    within_s: float = 60.0,
    every_s: float | None = None,
    what: str = "",
    story: Callable[[], str] = str,
) -> Answer:
    """Returns the first true value. Fails after `within_s` with the last value and the text of `story`."""
    started = time.monotonic()
    deadline = started + within_s
    while not (answer := condition()):
        now = time.monotonic()
        assert now < deadline, f"not within {within_s:g} s: {what} (last {answer!r})\n{story()}"
        time.sleep(every_s or min(SELDOM_S, max(OFTEN_S, 2 * (now - started))))
        started = time.monotonic()
    return answer
