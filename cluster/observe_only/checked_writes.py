"""Writes that threads send at once: the caller asks for each of them just before, since it has the connection to the
database.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

CHECKED: ContextVar[bool] = ContextVar("writes_are_checked", default=False)


@contextmanager
def writes_are_checked() -> Iterator[None]:
    """Writes of this thread are not asked for again. Its caller has called `Kube.check_write`."""
    before = CHECKED.set(True)
    try:
        yield
    finally:
        CHECKED.reset(before)
