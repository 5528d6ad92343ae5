"""Follows the log of a run: the doors process reads it from the API server with its own identity and forwards it.

To read logs is the only permission of doors in the cluster. A log is untrusted text: it is sent plain or escaped, never
as a page.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Hashable
from html import escape
from typing import TYPE_CHECKING

import structlog

from portal.core.errors import Refusal, Refused
from portal.live.backpressure import ClientStalled, SendWithTimeout
from portal.live.broadcaster import Broadcaster
from portal.live.types import Receive, Send
from portal.live.viewers import Viewer
from workloads.gateway.asgi import EdgeRequest, Header, answer
from workloads.gateway.queries import LogSource

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

log = structlog.get_logger(__name__)

# Each follower uses a thread that waits for the API server.
FOLLOWERS_LIMIT = 64
SILENCE_S = 3600.0
LINES_FOLLOWED = 2000
LINES_SHOWN = 200
CHUNKS_AHEAD = 16

TEXT: list[Header] = [
    (b"content-type", b"text/plain; charset=utf-8"),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; sandbox"),
]
# Not a log: a sentence that says why there is none yet.
NOTHING_YET: list[Header] = [*TEXT, (b"retry-after", b"5")]
HTML: list[Header] = [(b"content-type", b"text/html; charset=utf-8"), (b"x-content-type-options", b"nosniff")]

NO_POD = "There is no log: the pod has not started yet or was deleted."
UNREADABLE = "The log cannot be read at the moment. The pod may not have started yet."
TOO_MANY_LOGS = Refusal(
    "too_many_logs",
    f"{FOLLOWERS_LIMIT} logs are being followed, by all users together. Try again later.",
    status=503,
    retry_after_s=30,
)
_followers = threading.BoundedSemaphore(FOLLOWERS_LIMIT)


async def follow_log(
    live: Broadcaster,
    asked: EdgeRequest,
    receive: Receive,
    send: Send,
    *,
    credential: Hashable,
    source: LogSource | None,
) -> None:
    """Returns the log as plain text, for as long as the pod writes (`?follow=0`: only the current lines)."""
    if source is None:
        return await answer(send, 200, NO_POD.encode(), NOTHING_YET)
    if not _followers.acquire(blocking=False):
        raise Refused(TOO_MANY_LOGS)
    try:
        goes_on = asked.query.get("follow", "1") != "0"
        opened = await asyncio.to_thread(_open, source, follow=goes_on, lines=LINES_FOLLOWED)
        if opened is None:
            return await answer(send, 200, UNREADABLE.encode(), NOTHING_YET)
        outgoing = SendWithTimeout(send)
        await _relay(live, opened, receive, outgoing, Viewer(credential, outgoing.hurry))
    except ClientStalled:
        log.info("follower_stalled", pod=source.pod)
    finally:
        _followers.release()


async def log_fragment(send: Send, source: LogSource | None) -> None:
    """Returns the last lines of the log, for the page of the workload."""
    if source is None:
        return await answer(send, 200, _note(NO_POD), HTML)
    opened = await asyncio.to_thread(_open, source, follow=False, lines=LINES_SHOWN)
    if opened is None:
        return await answer(send, 200, _note(UNREADABLE), HTML)
    try:
        text = (await asyncio.to_thread(opened.read)).decode(errors="replace")
    finally:
        opened.close()
    if not text:
        return await answer(send, 200, _note("No output yet."), HTML)
    shown = f'<pre class="term term-log" tabindex="0" aria-label="Log">{escape(text)}</pre>'
    return await answer(send, 200, shown.encode(), HTML)


def _note(text: str) -> bytes:
    return f'<p class="pad small muted">{escape(text)}</p>'.encode()


def _open(source: LogSource, *, follow: bool, lines: int) -> BaseHTTPResponse | None:
    # Imported late: it takes half a second and 48 MB, which a process that follows no log saves.
    from cluster.client.errors import ClusterRefused, ClusterUnavailable
    from cluster.client.kube import connect

    try:
        return connect().open_log(
            namespace=source.namespace,
            pod=source.pod,
            container=source.container,
            follow=follow,
            tail_lines=lines,
            silence_s=SILENCE_S if follow else 10.0,
        )
    except (ClusterRefused, ClusterUnavailable) as problem:
        log.info("log_unavailable", pod=source.pod, error=type(problem).__name__)
        return None


async def _relay(live: Broadcaster, opened: BaseHTTPResponse, receive: Receive, send: Send, viewer: Viewer) -> None:
    """A thread reads and the event loop writes. A client that reads slowly slows down the thread, not the process."""
    loop = asyncio.get_running_loop()
    chunks: asyncio.Queue[bytes] = asyncio.Queue(CHUNKS_AHEAD)

    def read() -> None:
        from urllib3.exceptions import HTTPError

        try:
            while data := opened.read1(65536):
                asyncio.run_coroutine_threadsafe(chunks.put(data), loop).result()
        except (HTTPError, OSError, ValueError, RuntimeError) as cut:
            log.info("log_cut", error=type(cut).__name__)
        finally:
            opened.close()
        asyncio.run_coroutine_threadsafe(chunks.put(b""), loop)

    async with live.watching(viewer, receive):
        threading.Thread(target=read, daemon=True, name="log").start()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"cache-control", b"no-store"), *TEXT]})
        closed = asyncio.create_task(viewer.closed.wait())
        try:
            while not closed.done():
                getting = asyncio.create_task(chunks.get())
                await asyncio.wait({getting, closed}, return_when=asyncio.FIRST_COMPLETED)
                if closed.done():
                    getting.cancel()
                    break
                if not (data := getting.result()):
                    break
                await send({"type": "http.response.body", "body": data, "more_body": True})
        finally:
            closed.cancel()
            _end(opened)
            while not chunks.empty():
                chunks.get_nowait()
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def _end(opened: BaseHTTPResponse) -> None:
    """Wakes the thread that reads. A log that has ended has already returned its connection."""
    try:
        opened.shutdown()
    except (RuntimeError, ValueError, OSError):
        log.debug("log_had_ended")
