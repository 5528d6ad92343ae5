"""The log of a run: the doors process reads it from the API server with its own identity and forwards it, or answers
with the log that was kept when the run ended.

To read logs is the only permission of doors in the cluster. A log is untrusted text: it is sent plain or escaped, never
as a page.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Hashable
from html import escape
from typing import TYPE_CHECKING

import structlog

from portal.core.errors import Refusal, Refused
from portal.live.backpressure import ClientStalled, SendWithTimeout
from portal.live.broadcaster import Broadcaster
from portal.live.types import Receive, Send
from portal.live.viewers import Viewer
from workloads.gateway.asgi import EdgeRequest, Header, answer
from workloads.gateway.followers import Followers
from workloads.gateway.queries import LogSource
from workloads.logs.queries import KeptLog, NoLog

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

log = structlog.get_logger(__name__)

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

UNREADABLE = "The log cannot be read at the moment."
_followers = Followers()
# Called only if the log cannot be read from the cluster.
ReadsKept = Callable[[], Awaitable[KeptLog | NoLog]]


async def follow_log(
    live: Broadcaster,
    asked: EdgeRequest,
    receive: Receive,
    send: Send,
    *,
    credential: Hashable,
    person: int,
    source: LogSource | None,
    kept: ReadsKept,
) -> None:
    """Returns the log as plain text, for as long as the pod writes (`?follow=0`: only the current lines), or the log
    that was kept. Raises Refused: no_log (404), too_many_open (429).
    """
    if source is None:
        return await _kept_log(asked, send, await kept())
    with _followers.one(person, source.namespace):
        is_file = "download" in asked.query
        goes_on = asked.query.get("follow", "1") != "0" and not is_file
        opened = await asyncio.to_thread(_open, source, follow=goes_on, lines=LINES_FOLLOWED)
        if opened is None:
            return await _kept_log(asked, send, _unreadable(await kept()))
        outgoing = SendWithTimeout(send)
        headers = [*TEXT, (b"x-log-source", b"pod"), *([_as_file(asked.path)] if is_file else [])]
        try:
            await _relay(live, opened, receive, outgoing, Viewer(credential, outgoing.hurry), headers)
        except ClientStalled:
            log.info("follower_stalled", pod=source.pod)


def _unreadable(found: KeptLog | NoLog) -> KeptLog | NoLog:
    """There is a pod, but its log could not be read: it may be read later, also after the end of the run."""
    if isinstance(found, KeptLog):
        return found
    return NoLog(UNREADABLE if found.is_final else f"{UNREADABLE} The pod may not have started yet.", is_final=False)


async def _kept_log(asked: EdgeRequest, send: Send, found: KeptLog | NoLog) -> None:
    if isinstance(found, KeptLog):
        headers = [
            *TEXT,
            (b"x-log-source", b"kept"),
            (b"x-log-note", found.note.encode()),
            (b"x-log-expires-at", found.expires_at.isoformat().encode()),
        ]
        if "download" in asked.query:
            headers.append(_as_file(asked.path, found.run))
        return await answer(send, 200, found.text.encode(), headers)
    if not found.is_final:
        return await answer(send, 200, found.sentence.encode(), NOTHING_YET)
    if asked.wants_page:
        return await answer(send, 404, found.sentence.encode(), TEXT)
    raise Refused(Refusal("no_log", found.sentence, status=404))


def _as_file(path: str, run: int | None = None) -> Header:
    """The name of a workload has only letters, digits and hyphens."""
    name = path.rpartition("/")[2] + (f"-{run}" if run is not None else "")
    return (b"content-disposition", f'attachment; filename="{name}.log"'.encode())


async def log_fragment(
    asked: EdgeRequest, send: Send, source: LogSource | None, kept: ReadsKept, *, person: int
) -> None:
    """Returns the last lines of the log, for the page of the workload. Raises Refused: too_many_open (429)."""
    if source is None:
        return await answer(send, 200, _kept_fragment(asked, await kept()), HTML)
    with _followers.one(person, source.namespace):
        opened = await asyncio.to_thread(_open, source, follow=False, lines=LINES_SHOWN)
        if opened is None:
            return await answer(send, 200, _kept_fragment(asked, _unreadable(await kept())), HTML)
        try:
            text = (await asyncio.to_thread(opened.read)).decode(errors="replace")
        finally:
            opened.close()
        return await answer(send, 200, _lines(text, "No output yet."), HTML)


def _kept_fragment(asked: EdgeRequest, found: KeptLog | NoLog) -> bytes:
    if isinstance(found, NoLog):
        return _note(found.sentence)
    last = "".join(found.text.splitlines(keepends=True)[-LINES_SHOWN:])
    href = f"{asked.path}?run={found.run}&worker={found.worker}&download=1"
    download = f'<a href="{escape(href)}" download>Download</a>'
    note = f'<p class="pad small muted">{escape(found.note)} {download}</p>'
    return note.encode() + _lines(last, "It has no output.")


def _lines(text: str, nothing: str) -> bytes:
    if not text:
        return _note(nothing)
    return f'<pre class="term term-log" tabindex="0" aria-label="Log">{escape(text)}</pre>'.encode()


def _note(text: str) -> bytes:
    return f'<p class="pad small muted">{escape(text)}</p>'.encode()


def _open(source: LogSource, *, follow: bool, lines: int) -> BaseHTTPResponse | None:
    # Imported late: it takes half a second and 48 MB, which a process that follows no log saves.
    from cluster.client.errors import ClusterRefused, ClusterUnavailable
    from cluster.client.kube import connect_for_logs

    try:
        return connect_for_logs().open_log(
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


async def _relay(
    live: Broadcaster,
    opened: BaseHTTPResponse,
    receive: Receive,
    send: Send,
    viewer: Viewer,
    headers: list[Header],
) -> None:
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
        carried = [(b"cache-control", b"no-store"), *headers]
        await send({"type": "http.response.start", "status": 200, "headers": carried})
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
