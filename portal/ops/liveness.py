"""Whether a worker still takes messages, and beat still sends them: what /livez on the internal port says.

Each probe asks for a sign: a worker gets a message in a queue of its own, beat sends one every few seconds anyway. A
process that gave none for SILENT_S, although Redis answers, is to be restarted: it has lost its consumer or hangs, and
nothing else would show it as long as another replica does the work. Other processes give no signs and are always alive.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

# A task may take 20 s, and a worker looks for a Redis that came back every 30 s at most.
SILENT_S = 90.0


class Liveness:
    """`expect_signs` says how a probe asks; it raises if Redis does not answer. `sign` is the answer to all questions
    so far.
    """

    def __init__(self) -> None:
        self._ask: Callable[[], object] | None = None
        self._unanswered_since: float | None = None
        self._lock = threading.Lock()

    def expect_signs(self, ask: Callable[[], object]) -> None:
        self._ask = ask

    def sign(self) -> None:
        with self._lock:
            self._unanswered_since = None

    def probe(self) -> tuple[int, str]:
        """Status and text of /livez."""
        if self._ask is None:
            return 200, "alive\n"
        with self._lock:
            if self._unanswered_since is None:
                self._unanswered_since = time.monotonic()
        try:
            self._ask()
        except Exception:  # each kombu transport has its own exceptions
            # A process must not be restarted because Redis does not answer. The count begins again when it does.
            self.sign()
        with self._lock:
            since = self._unanswered_since
        silent_s = 0.0 if since is None else time.monotonic() - since
        if silent_s > SILENT_S:
            return 503, f"No message for {silent_s:.0f} s, although Redis answers.\n"
        return 200, "alive\n"


liveness = Liveness()
