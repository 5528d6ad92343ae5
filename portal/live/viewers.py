"""One open connection and its events that have not been sent yet."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field

from portal.live.waiter import SingleWaiterEvent


@dataclass(eq=False, slots=True)
class Viewer:
    """One open connection. `closed` is set when it must end, for any reason. `hurry`: of its SendWithTimeout."""

    credential: Hashable
    hurry: Callable[[], None] | None = None
    pending: dict[str, bytes] = field(default_factory=dict)
    news: SingleWaiterEvent = field(default_factory=SingleWaiterEvent)
    closed: SingleWaiterEvent = field(default_factory=SingleWaiterEvent)

    def tell(self, events: Mapping[str, bytes]) -> None:
        """Queues events. A slow viewer gets the newest version of each fragment, not every version."""
        self.pending.update(events)
        self.news.set()

    def take(self) -> bytes:
        """Removes and returns the queued events, so that a waiting stream keeps no page in memory."""
        told, self.pending = self.pending, {}
        return b"".join(told.values())

    def close(self) -> None:
        self.closed.set()
        self.news.set()
        if self.hurry is not None:
            self.hurry()
