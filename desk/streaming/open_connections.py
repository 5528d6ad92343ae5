"""How many streams, logs and waiting calls are open in this process: bounded for each token or session, each person,
and together. Used by the event loop alone, so it needs no lock.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from portal.core.errors import Refusal, Refused
from workloads.gateway.stream_access import StreamViewer

# More tabs than a user needs.
OPEN_LIMIT = 50
OF_PERSON = 2 * OPEN_LIMIT
# With about 50 KiB for each this is less than half of the memory that doors may use.
OF_PROCESS = 8000
# What waits for one of doors' four threads: about a second of their work. More would only wait longer.
PENDING_MAX = 400
# Streams of pages that wait until they are looked up together: as many as may be open, which takes a few seconds.
OPENING_MAX = OF_PROCESS

TOO_MANY_OPEN = Refusal(
    "too_many_open",
    f"{OPEN_LIMIT} streams, logs and waiting calls are open for this token or session. Close some of them.",
    status=429,
    retry_after_s=5,
)
TOO_MANY_OF_PERSON = Refusal(
    "too_many_open",
    f"{OF_PERSON} streams, logs and waiting calls of yours are open, with all tokens and sessions. Close some of them.",
    status=429,
    retry_after_s=5,
)

Key = TypeVar("Key", str, int)


class OpenConnections:
    def __init__(self) -> None:
        self._of_credential: Counter[str] = Counter()
        self._of_person: Counter[int] = Counter()

    @contextmanager
    def one(self, credential: StreamViewer) -> Iterator[None]:
        """Raises Refused at a limit."""
        key, person = credential.session_key or credential.token_prefix, credential.user_id
        if self._of_credential[key] >= OPEN_LIMIT:
            raise Refused(TOO_MANY_OPEN)
        if self._of_person[person] >= OF_PERSON:
            raise Refused(TOO_MANY_OF_PERSON)
        if self._of_person.total() >= OF_PROCESS:
            raise Refused(full())
        self._of_credential[key] += 1
        self._of_person[person] += 1
        try:
            yield
        finally:
            _less(self._of_credential, key)
            _less(self._of_person, person)


def _less(counter: Counter[Key], key: Key) -> None:
    counter[key] -= 1
    if not counter[key]:
        del counter[key]


def full() -> Refusal:
    return _later(f"{OF_PROCESS:,} streams are open, the limit.", random.randint(5, 30))


def busy() -> Refusal:
    """That is over in seconds: as long as streams wait that a restart has ended (portal/live/sse.py)."""
    return _later("The portal is busy: too many streams and waiting calls begin at once.", random.randint(2, 12))


def _later(why: str, again_s: int) -> Refusal:
    """The seconds are random, so that those who were refused together do not return together."""
    text = f"{why} Try again in {again_s} s; pages work without a stream."
    return Refusal("overloaded", text, status=503, retry_after_s=again_s)
