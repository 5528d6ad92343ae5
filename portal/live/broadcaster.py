"""Streams of what changes: bare ASGI server-sent events. A leaf: it knows channels and functions, no app and no page.

A channel is a namespace; a topic is one view of it. The views of a channel that somebody watches are rendered together,
from one reading and once for all who watch, and only fragments whose bytes changed are sent. Per process, not per
stream: one Redis subscription, one access check of all open viewers every 3 s, so that a right that was lost ends a
stream within 5 s, and one comparison of versions every 15 s, which finds what a lost hint would have told
(`staleness.py`). While it waits, a stream holds no thread and no database connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import (
    Callable,
    Collection,
    Coroutine,
    Hashable,
)
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import Any, TypeVar

import redis.asyncio
import structlog
from django.db import close_old_connections

from portal.core.hints import channel_name
from portal.live.backpressure import ClientStalled, SendWithTimeout
from portal.live.sse import STREAM_HEADERS, server_sent_event
from portal.live.staleness import ReadVersions, RenderedVersion, StalenessTracker
from portal.live.types import FilterAllowed, Fragments, Receive, RenderChannel, Send, Topic
from portal.live.viewers import Viewer
from portal.live.waiter import SingleWaiterEvent

log = structlog.get_logger(__name__)

KEEPALIVE_S = 15.0
# With the check itself, and a client that has to be cut off, less than 5 s from the loss of a right.
ACCESS_CHECK_S = 3.0
VERSION_CHECK_S = 15.0
RETRY_S = 1.0
# Between renderings that nobody hinted: what changes now goes first.
PAUSE_S = 0.05
# So many checks may fail (the database is away) before streams end: who may watch is then not known any more.
UNCHECKED_LIMIT = 3

Result = TypeVar("Result")


@dataclass(eq=False)
class _State:
    """Of one topic with viewers: what they have, and whether it has to be rendered again."""

    viewers: set[Viewer] = field(default_factory=set)
    shown: dict[str, bytes] | None = None
    is_stale: bool = False


class Broadcaster:
    """One per process. `start` before the first stream, `stop` at the end."""

    def __init__(
        self,
        *,
        redis_url: str,
        render: RenderChannel,
        allowed: FilterAllowed,
        versions: ReadVersions,
        threads: int = 4,
    ) -> None:
        self._redis_url = redis_url
        self._render, self._allowed, self._versions = render, allowed, versions
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="doors")
        # Its own: who may watch is asked in time, however much there is to render.
        self._checker = ThreadPoolExecutor(1, thread_name_prefix="access")
        self._topics: dict[Topic, _State] = {}
        self._rendering: dict[str, asyncio.Task[None]] = {}
        self._viewers: set[Viewer] = set()
        self._waiting: dict[str, set[SingleWaiterEvent]] = {}
        self._compared = StalenessTracker()
        self._unchecked = 0
        self._tasks: list[asyncio.Task[None]] = []
        self.listening = asyncio.Event()  # hints are being heard

    async def start(self) -> None:
        loops = (
            self._listen(),
            self._every(ACCESS_CHECK_S, self.check_access),
            self._every(VERSION_CHECK_S, self.compare),
        )
        self._tasks = [asyncio.create_task(loop) for loop in loops]

    async def stop(self) -> None:
        self.close_all()
        # A library that is just ending a wait of its own may swallow a cancellation.
        while left := {task for task in self._tasks if not task.done()}:
            for task in left:
                task.cancel()
            await asyncio.wait(left, timeout=0.2)
        for threads in (self._threads, self._checker):
            threads.shutdown(wait=False, cancel_futures=True)

    def close_all(self) -> None:
        for viewer in list(self._viewers):
            viewer.close()
        for events in self._waiting.values():
            for event in events:
                event.set()

    async def in_thread(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """A synchronous function (a query) off the event loop, in one of few threads; its connection is given back."""
        return await self._run(self._threads, function, *arguments)

    async def _run(self, threads: ThreadPoolExecutor, function: Callable[..., Result], *arguments: Any) -> Result:
        # Log lines of the thread name the request; what was bound there ends with the call.
        run = copy_context().run
        return await asyncio.get_running_loop().run_in_executor(threads, run, _with_connection, function, *arguments)

    # ---- streams -----------------------------------------------------------------------------------------------

    async def stream(self, receive: Receive, send: Send, *, topic: Topic, credential: Hashable) -> None:
        """Send the topic's fragments, then each change, until the client goes, stops reading or loses its right."""
        outgoing = SendWithTimeout(send)
        viewer = Viewer(credential, outgoing.hurry)
        state = self._topics.setdefault(topic, _State())
        state.viewers.add(viewer)
        if state.shown is None:
            self._mark(topic)
        else:
            viewer.tell(state.shown)
        try:
            async with self.watching(viewer, receive):
                await outgoing({"type": "http.response.start", "status": 200, "headers": STREAM_HEADERS})
                await self._write(viewer, outgoing)
        except ClientStalled:
            log.info("viewer_stalled", channel=topic.channel)
        finally:
            state.viewers.discard(viewer)
            if not state.viewers and self._topics.get(topic) is state:
                del self._topics[topic]

    @contextlib.asynccontextmanager
    async def watching(self, viewer: Viewer, receive: Receive) -> Any:
        """While inside, the viewer's access is checked and the end of its connection is noticed."""
        self._viewers.add(viewer)
        gone = asyncio.create_task(_until_gone(receive, viewer))
        try:
            yield
        finally:
            self._viewers.discard(viewer)
            gone.cancel()

    async def _write(self, viewer: Viewer, send: Send) -> None:
        while not viewer.closed.is_set():
            try:
                async with asyncio.timeout(KEEPALIVE_S):
                    await viewer.news.wait()
            except TimeoutError:
                await send({"type": "http.response.body", "body": b":\n\n", "more_body": True})
                continue
            viewer.news.clear()
            if viewer.pending and not viewer.closed.is_set():
                await send({"type": "http.response.body", "body": viewer.take(), "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def changed(self, channel: str, viewer: Viewer, *, within_s: float) -> None:
        """Returns at the next hint about the channel, after `within_s`, or when the viewer has to go."""
        news = viewer.news
        waiting = self._waiting.setdefault(channel, set())
        waiting.add(news)
        try:
            async with asyncio.timeout(within_s):
                await news.wait()
            if not viewer.closed.is_set():
                news.clear()
        except TimeoutError:
            return
        finally:
            waiting.discard(news)
            if not waiting and self._waiting.get(channel) is waiting:
                del self._waiting[channel]

    # ---- rendering ---------------------------------------------------------------------------------------------

    def _hint(self, channel: str) -> None:
        for topic in [topic for topic in self._topics if topic.channel == channel]:
            self._mark(topic)
        for news in self._waiting.get(channel, ()):
            news.set()

    def _mark(self, topic: Topic) -> None:
        """Hints that arrive during a rendering lead to one more, however many they are."""
        self._topics[topic].is_stale = True
        if topic.channel not in self._rendering:
            # Nobody's request: many watch what it makes.
            self._rendering[topic.channel] = asyncio.create_task(self._refresh(topic.channel), context=Context())

    async def _refresh(self, channel: str) -> None:
        try:
            while stale := {topic: state for topic, state in self._of(channel).items() if state.is_stale}:
                # What comes to be watched meanwhile is rendered from later.
                is_whole = len(stale) == len(self._of(channel))
                for state in stale.values():
                    state.is_stale = False
                try:
                    views, loop = sorted(topic.view for topic in stale), asyncio.get_running_loop()
                    read = await self.in_thread(self._render_all, channel, views, loop)
                    if is_whole:
                        self._compared.rendered(channel, read)
                except Exception:
                    log.exception("render_failed", channel=channel)
                    for state in stale.values():
                        state.is_stale = True
                    await asyncio.sleep(RETRY_S)
        finally:
            del self._rendering[channel]

    def _of(self, channel: str) -> dict[Topic, _State]:
        """Its topics that somebody watches."""
        return {topic: one for topic, one in self._topics.items() if topic.channel == channel and one.viewers}

    def _render_all(self, channel: str, views: Collection[str], loop: asyncio.AbstractEventLoop) -> RenderedVersion:
        """In a thread. What is made first is shown while the rest is on its way."""
        at = time.monotonic()
        with contextlib.closing(self._render(channel, views)) as rendering:
            while True:
                try:
                    view, fragments = next(rendering)
                except StopIteration as end:
                    return RenderedVersion(end.value, at)
                loop.call_soon_threadsafe(self._show, Topic(channel, view), fragments)

    def _show(self, topic: Topic, fragments: Fragments | None) -> None:
        state = self._topics.get(topic)
        if state is None:
            return
        if fragments is None:
            for viewer in state.viewers:
                viewer.close()
            return
        before = state.shown or {}
        # Put into an event's form once for all who watch.
        told = {name: server_sent_event(name, html) for name, html in fragments.items()}
        state.shown = {**before, **told}
        if changes := {name: text for name, text in told.items() if before.get(name) != text}:
            for viewer in state.viewers:
                viewer.tell(changes)

    # ---- once per process ----------------------------------------------------------------------------------------

    async def _listen(self) -> None:
        """The one subscription. After a pause anything may have changed, so everything is rendered again."""
        pattern = channel_name("*")
        prefix = len(channel_name(""))
        while True:
            client = redis.asyncio.Redis.from_url(self._redis_url, socket_connect_timeout=1, health_check_interval=15)
            try:
                async with client.pubsub(ignore_subscribe_messages=True) as subscription:
                    await subscription.psubscribe(pattern)
                    self.listening.set()
                    self._hint_all()
                    while True:
                        message = await subscription.get_message(timeout=KEEPALIVE_S)
                        if message is not None:
                            self._hint(message["channel"].decode()[prefix:])
            except (redis.RedisError, OSError) as error:
                log.warning("hints_lost", error=type(error).__name__)
                self.listening.clear()
                await asyncio.sleep(RETRY_S)
            finally:
                await client.aclose()

    def _hint_all(self) -> None:
        for channel in {topic.channel for topic in self._topics} | set(self._waiting):
            self._hint(channel)

    async def check_access(self) -> None:
        """One question for all who watch; who is not in the answer is closed."""
        watching = list(self._viewers)
        if not watching:
            return
        try:
            allowed = set(await self._run(self._checker, self._allowed, {viewer.credential for viewer in watching}))
        except Exception:
            self._unchecked += 1
            log.exception("access_check_failed", times=self._unchecked)
            allowed = {viewer.credential for viewer in watching} if self._unchecked < UNCHECKED_LIMIT else set()
        else:
            self._unchecked = 0
        for viewer in watching:
            if viewer.credential not in allowed:
                viewer.close()

    async def compare(self) -> None:
        """Channels that were not rendered from what is there now are rendered again: some hint was lost, or others did
        something that their pages show.
        """
        channels = {topic.channel for topic in self._topics}
        if not channels:
            return
        try:
            found = await self.in_thread(self._versions, channels)
        except Exception:
            log.exception("version_check_failed")
            return
        comparison = self._compared.compare(found, time.monotonic())
        missed = [channel for channel in found if comparison.is_missed(channel)]
        for channel in missed:
            # A hint that was not lost may have begun it.
            await self._until_rendered(channel)
            if comparison.is_missed(channel):
                self._hint(channel)
                # One after the other, and however many they are, all of them before the next comparison.
                await self._until_rendered(channel)
                await asyncio.sleep(min(PAUSE_S, VERSION_CHECK_S / 2 / len(missed)))

    async def _until_rendered(self, channel: str) -> None:
        if channel in self._rendering:
            await asyncio.wait([self._rendering[channel]], timeout=RETRY_S)

    async def _every(self, seconds: float, check: Callable[[], Coroutine[Any, Any, None]]) -> None:
        while True:
            await asyncio.sleep(seconds)
            await check()


def _with_connection(function: Callable[..., Result], *arguments: Any) -> Result:
    try:
        return function(*arguments)
    finally:
        close_old_connections()


async def _until_gone(receive: Receive, viewer: Viewer) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    viewer.close()
