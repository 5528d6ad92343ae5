"""A browser that listens to an event stream, without a browser."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Collection, Generator, Hashable
from typing import Any

from django.conf import settings

from portal.core import hints
from portal.live.broadcaster import Broadcaster
from portal.live.sse import server_sent_event
from portal.live.types import Topic

Rendered = Generator[tuple[str, dict[str, bytes] | None], None, Hashable]

# Of this process alone: the portals of other tests hint about their teams on the same Redis.
A, B = (f"team-{letter}-{uuid.uuid4().hex}" for letter in "ab")

TEAM_A, TEAM_B = Topic(A), Topic(B)

# A bound on what hangs, not on what is slow.
PATIENCE_S = 20


class Desk:
    """What the functions that Live is given look at. `rendered` counts how often."""

    def __init__(self) -> None:
        self.shown: dict[str, dict[str, bytes]] = {
            A: {"state_runs": b"<p>0</p>"},
            B: {"state_runs": b"<p>b</p>"},
        }
        self.versions: dict[str, Hashable] = {A: 1, B: 1}
        self.around: dict[str, Hashable] = {}
        self.barred: set[Hashable] = set()
        self.rendered = 0

    def render(self, channel: str, views: Collection[str]) -> Rendered:
        """From one moment: the version is that of before."""
        self.rendered += 1
        version = self.version_of(channel)
        for view in views:
            yield view, self.shown.get(channel)
        return version

    def allowed(self, credentials: Collection[Hashable]) -> set[Hashable]:
        return set(credentials) - self.barred

    def version_of(self, channel: str) -> Hashable:
        return self.versions.get(channel), self.around.get(channel)

    def versions_of(self, channels: Collection[str]) -> dict[str, Hashable]:
        return {channel: self.version_of(channel) for channel in channels}

    def live(self) -> Broadcaster:
        return Broadcaster(
            redis_url=settings.REDIS_URL,
            render=self.render,
            allowed=self.allowed,
            versions=self.versions_of,
        )


class Browser:
    """One open stream: `receive` and `send` as a server would hand them over."""

    def __init__(self, streams: Broadcaster, topic: Topic, credential: Hashable) -> None:
        self.gone = asyncio.Event()
        self.messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.task = asyncio.create_task(
            streams.stream(self._receive, self.messages.put, topics=[topic], credential=credential)  # type: ignore[arg-type]
        )

    async def _receive(self) -> dict[str, Any]:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def next(self) -> bytes:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                message = await self.messages.get()
                if message["type"] == "http.response.body" and not message["body"].startswith(b"retry: "):
                    return bytes(message["body"])

    async def leave(self) -> None:
        self.gone.set()
        async with asyncio.timeout(PATIENCE_S):
            await self.task


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.01)


async def hint(channel: str) -> None:
    await asyncio.to_thread(hints._send_page_hint, channel)


def event_of(html: str) -> bytes:
    return server_sent_event("state_runs", html.encode())
