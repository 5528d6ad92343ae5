"""One open connection, and what it has been told but not sent yet."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field

from portal.live.waiter import SingleWaiterEvent


@dataclass(eq=False, slots=True)
class Viewer:
    """One open connection. `closed` is set when it has to end, whoever decided that; `hurry`: of its Outgoing."""

    credential: Hashable
    hurry: Callable[[], None] | None = None
    pending: dict[str, bytes] = field(default_factory=dict)
    news: SingleWaiterEvent = field(default_factory=SingleWaiterEvent)
    closed: SingleWaiterEvent = field(default_factory=SingleWaiterEvent)

    def tell(self, events: Mapping[str, bytes]) -> None:
        """A slow viewer gets the newest of each fragment, not every version."""
        self.pending.update(events)
        self.news.set()

    def take(self) -> bytes:
        """What it was told and has not got yet. Nothing keeps it: while a stream waits it holds no page."""
        told, self.pending = self.pending, {}
        return b"".join(told.values())

    def close(self) -> None:
        self.closed.set()
        self.news.set()
        if self.hurry is not None:
            self.hurry()
