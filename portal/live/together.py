"""Channels that are rendered together: those of people, of whom thousands connect at once after a restart, each with
little to read.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextvars import Context
from typing import Any, Protocol

import structlog

from portal.live.staleness import RenderedVersion
from portal.live.types import Fragments, RenderTogether

log = structlog.get_logger(__name__)
RETRY_S = 1.0


class InThread(Protocol):
    def __call__(self, function: RenderTogether, channels: set[str], /) -> Awaitable[Mapping[str, Any]]: ...


class Together:
    """Used by the event loop alone. What is asked during a rendering is rendered after it, all of it at once."""

    def __init__(
        self,
        render: RenderTogether,
        in_thread: InThread,
        show: Callable[[str, Fragments, RenderedVersion], None],
        is_watched: Callable[[str], bool],
    ) -> None:
        self._render, self._in_thread, self._show, self._is_watched = render, in_thread, show, is_watched
        self._asked: set[str] = set()
        self._rendering: asyncio.Task[None] | None = None

    def ask(self, channel: str) -> None:
        self._asked.add(channel)
        if self._rendering is None:
            # An empty context: the rendering is for all viewers and belongs to no request.
            self._rendering = asyncio.create_task(self._refresh(), context=Context())

    async def _refresh(self) -> None:
        try:
            while self._asked:
                channels, self._asked = self._asked, set()
                at = time.monotonic()
                try:
                    found = await self._in_thread(self._render, channels)
                except Exception:
                    log.exception("render_failed", channels=len(channels))
                    self._asked |= {channel for channel in channels if self._is_watched(channel)}
                    await asyncio.sleep(RETRY_S)
                    continue
                for channel, (fragments, version) in found.items():
                    self._show(channel, fragments, RenderedVersion(version, at))
        finally:
            self._rendering = None
