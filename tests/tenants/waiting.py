"""Waiting for a condition with a deadline; no test sleeps for a fixed time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


def wait_until(condition: Callable[[], bool], *, within_s: float = 20.0, every_s: float = 0.1) -> bool:
    """Whether it became true in time."""
    pause = threading.Event()
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        pause.wait(every_s)
    return True
