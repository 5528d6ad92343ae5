"""Streams of changes: server-sent events in plain ASGI. This module knows channels and functions, no app and no page.

A channel is a namespace or a person; a topic is one view of it; a stream has one topic or several. The watched views of
a channel are rendered together, from one read and once for all viewers, and only fragments whose bytes changed are
sent. Per process, not per stream: one Redis subscription; one access check of all open viewers every 3 s, so that a
stream ends within 5 s after its user lost access; and one comparison of versions every 15 s, which finds changes whose
hint was lost (`staleness.py`). A waiting stream holds no thread and no database connection.
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

import redis.asyncio.client
import structlog
from django.db import close_old_connections

from portal.core.connections import redis_server
from portal.core.hints import channel_name
from portal.live.backpressure import ClientStalled, SendWithTimeout
from portal.live.sse import STREAM_HEADERS, retry_field, server_sent_event
from portal.live.staleness import ReadVersions, RenderedVersion, StalenessTracker
from portal.live.together import Together
from portal.live.types import FilterAllowed, Fragments, Receive, RenderChannel, RenderTogether, Send, Topic
from portal.live.viewers import Viewer
from portal.live.waiter import SingleWaiterEvent

log = structlog.get_logger(__name__)

KEEPALIVE_S = 15.0
# Plus the check itself and FAREWELL_S for a slow client: the stream ends less than 5 s after access was lost.
ACCESS_CHECK_S = 3.0
VERSION_CHECK_S = 15.0
RETRY_S = 1.0
# An idle subscription is tested, and Redis has to answer within this time.
ANSWER_S = 5.0
# Pause between renderings that `compare` starts, so that renderings after a hint go first.
PAUSE_S = 0.05
# For `changed`: a hint about any channel. No namespace has this name.
ANY_CHANNEL = "*"
# Streams end after this many failed checks in a row (database unavailable): the users' access is then unknown.
UNCHECKED_LIMIT = 3

Result = TypeVar("Result")


@dataclass(eq=False)
class _State:
    """State of one watched topic: its viewers, the fragments they have, and whether it must be rendered again."""

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
        render_together: RenderTogether | None = None,
        is_together: Callable[[str], bool] = lambda channel: False,
        threads: int = 4,
    ) -> None:
        """`render_together`: for the channels of `is_together`, of which there are thousands with little to read."""
        self._redis_url = redis_url
        self._render, self._allowed, self._versions = render, allowed, versions
        self._is_together = is_together
        self._of_channel: dict[str, set[Topic]] = {}
        if render_together is not None:
            watched = self._of_channel.__contains__
            self._together = Together(render_together, self.in_thread, self._show_channel, watched)
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="doors")
        # A separate thread, so that access checks run on time, however much there is to render.
        self._checker = ThreadPoolExecutor(1, thread_name_prefix="access")
        # Functions that run or wait for a thread.
        self.pending = 0
        self._topics: dict[Topic, _State] = {}
        self._rendering: dict[str, asyncio.Task[None]] = {}
        self._viewers: set[Viewer] = set()
        self._waiting: dict[str, set[SingleWaiterEvent]] = {}
        self._compared = StalenessTracker()
        self._unchecked = 0
        self._tasks: list[asyncio.Task[None]] = []
        self.listening = asyncio.Event()  # the Redis subscription is active

    async def start(self) -> None:
        loops = (
            self._listen(),
            self._every(ACCESS_CHECK_S, self.check_access),
            self._every(VERSION_CHECK_S, self.compare),
        )
        self._tasks = [asyncio.create_task(loop) for loop in loops]

    async def stop(self) -> None:
        self.close_all()
        # Repeated, because a library whose own wait ends at this moment may swallow the cancellation.
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
        """Runs a synchronous function (a query) in one of a few threads, then releases its database connection."""
        self.pending += 1
        try:
            return await self._run(self._threads, function, *arguments)
        finally:
            self.pending -= 1

    async def _run(self, threads: ThreadPoolExecutor, function: Callable[..., Result], *arguments: Any) -> Result:
        # In a copy of the context: log lines of the thread have the request's id, and bindings made there end with it.
        run = copy_context().run
        return await asyncio.get_running_loop().run_in_executor(threads, run, _with_connection, function, *arguments)

    # ---- streams -----------------------------------------------------------------------------------------------

    async def stream(self, receive: Receive, send: Send, *, topics: Collection[Topic], credential: Hashable) -> None:
        """Send the topics' fragments, then each change, until the client disconnects, stops reading or loses access."""
        outgoing = SendWithTimeout(send)
        viewer = Viewer(credential, outgoing.hurry)
        watched = {topic: self._topics.setdefault(topic, _State()) for topic in topics}
        for topic, state in watched.items():
            self._of_channel.setdefault(topic.channel, set()).add(topic)
            state.viewers.add(viewer)
            if state.shown is None:
                self._mark(topic)
            else:
                viewer.tell(state.shown)
        try:
            async with self.watching(viewer, receive):
                await outgoing({"type": "http.response.start", "status": 200, "headers": STREAM_HEADERS})
                await outgoing({"type": "http.response.body", "body": retry_field(), "more_body": True})
                await self._write(viewer, outgoing)
        except ClientStalled:
            log.info("viewer_stalled", channels=[topic.channel for topic in topics])
        finally:
            for topic, state in watched.items():
                state.viewers.discard(viewer)
                if not state.viewers and self._topics.get(topic) is state:
                    self._forget(topic)

    def _forget(self, topic: Topic) -> None:
        del self._topics[topic]
        of_channel = self._of_channel[topic.channel]
        of_channel.discard(topic)
        if not of_channel:
            del self._of_channel[topic.channel]

    @contextlib.asynccontextmanager
    async def watching(self, viewer: Viewer, receive: Receive) -> Any:
        """Inside the context, the viewer's access is checked, and the viewer is closed when its client disconnects."""
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
        """Returns at the next hint about the channel, after `within_s`, or when the viewer is closed."""
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
        for topic in self._of_channel.get(channel, ()):
            self._mark(topic)
        for news in (*self._waiting.get(channel, ()), *self._waiting.get(ANY_CHANNEL, ())):
            news.set()

    def _mark(self, topic: Topic) -> None:
        """All hints that arrive during a rendering lead to one further rendering."""
        self._topics[topic].is_stale = True
        if self._is_together(topic.channel):
            self._together.ask(topic.channel)
        elif topic.channel not in self._rendering:
            # An empty context: the rendering is for all viewers and belongs to no request.
            self._rendering[topic.channel] = asyncio.create_task(self._refresh(topic.channel), context=Context())

    async def _refresh(self, channel: str) -> None:
        try:
            while stale := {topic: state for topic, state in self._of(channel).items() if state.is_stale}:
                # Topics that get their first viewer during the rendering are rendered later, from a newer read.
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

    def _show_channel(self, channel: str, fragments: Fragments, read: RenderedVersion) -> None:
        for topic in self._of(channel):
            self._show(topic, fragments)
        self._compared.rendered(channel, read)

    def _of(self, channel: str) -> dict[Topic, _State]:
        """The channel's topics that have viewers."""
        found = {topic: self._topics[topic] for topic in self._of_channel.get(channel, ())}
        return {topic: one for topic, one in found.items() if one.viewers}

    def _render_all(self, channel: str, views: Collection[str], loop: asyncio.AbstractEventLoop) -> RenderedVersion:
        """Runs in a thread. Each view is shown as soon as it is rendered."""
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
        # Formatted as an event once for all viewers.
        told = {name: server_sent_event(name, html) for name, html in fragments.items()}
        state.shown = {**before, **told}
        if changes := {name: text for name, text in told.items() if before.get(name) != text}:
            for viewer in state.viewers:
                viewer.tell(changes)

    # ---- tasks of the process ------------------------------------------------------------------------------------

    async def _listen(self) -> None:
        """The one Redis subscription. After an interruption, all channels are rendered again: hints may be lost."""
        pattern = channel_name("*")
        prefix = len(channel_name(""))
        while True:
            try:
                async with (
                    redis_server.async_client(self._redis_url, socket_connect_timeout=1) as client,
                    client.pubsub(ignore_subscribe_messages=True) as subscription,
                ):
                    async with asyncio.timeout(ANSWER_S):
                        await subscription.psubscribe(pattern)
                    self.listening.set()
                    self._hint_all()
                    while True:
                        message = await _next_message(subscription)
                        if message["type"] == "pmessage":
                            self._hint(message["channel"].decode()[prefix:])
            except (redis.RedisError, OSError) as error:
                log.warning("hints_lost", error=type(error).__name__)
                self.listening.clear()
                await asyncio.sleep(RETRY_S)

    def _hint_all(self) -> None:
        for channel in {topic.channel for topic in self._topics} | set(self._waiting):
            self._hint(channel)

    async def check_access(self) -> None:
        """One access check for all viewers. Viewers without access are closed."""
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
        """Renders channels again whose last rendering has an old version: a hint was lost, or their pages show a change
        that sends them no hint.
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
            # A hint may already have started a rendering.
            await self._until_rendered(channel)
            if comparison.is_missed(channel):
                self._hint(channel)
                # One after the other, with pauses short enough to finish all before the next comparison.
                await self._until_rendered(channel)
                await asyncio.sleep(min(PAUSE_S, VERSION_CHECK_S / 2 / len(missed)))

    async def _until_rendered(self, channel: str) -> None:
        if channel in self._rendering:
            await asyncio.wait([self._rendering[channel]], timeout=RETRY_S)

    async def _every(self, seconds: float, check: Callable[[], Coroutine[Any, Any, None]]) -> None:
        while True:
            await asyncio.sleep(seconds)
            await check()


async def _next_message(subscription: redis.asyncio.client.PubSub) -> dict[str, Any]:
    """Waits for a message. Raises ConnectionError if Redis does not answer: its host vanished, or it hangs."""
    found: dict[str, Any] | None = await subscription.get_message(timeout=KEEPALIVE_S)
    if found is None:
        await subscription.ping()
        found = await subscription.get_message(timeout=ANSWER_S)
    if found is None:
        raise redis.ConnectionError("Redis does not answer.")
    return found


def _with_connection(function: Callable[..., Result], *arguments: Any) -> Result:
    try:
        return function(*arguments)
    finally:
        close_old_connections()


async def _until_gone(receive: Receive, viewer: Viewer) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    viewer.close()
