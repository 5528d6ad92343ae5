"""Clients that disconnect silently, never read, or never finish a request: a server on real sockets keeps nothing of
them.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
import struct
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
import uvicorn

from portal.live import backpressure, broadcaster, viewers
from portal.live.broadcaster import Broadcaster
from portal.live.types import Topic
from tests.portal.live.browser import PATIENCE_S, A, B, Desk, hint, until
from tests.support.processes.sockets import subscriptions

pytestmark = pytest.mark.asyncio
# More than the buffers between two sockets of one machine hold.
MUCH = 8 << 20
# Descriptors and tasks that come and go by themselves: a pooled Redis connection, a closing transport.
SLACK = 3
THREADS = 4


@dataclass
class Served:
    """`streams` on a port: a path is a topic, /wait/... a call that waits for it."""

    streams: Broadcaster
    desk: Desk
    port: int

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        channel = scope["path"].strip("/")
        if channel.startswith("wait/"):
            viewer = viewers.Viewer(channel)
            async with self.streams.watching(viewer, receive):
                while not viewer.closed.is_set():
                    await self.streams.changed(channel, viewer, within_s=60)
            return
        await self.streams.stream(receive, send, topics=[Topic(channel)], credential=channel)

    def connect(self, path: str, *, sends: bytes | None = None, small: bool = False) -> socket.socket:
        found = socket.socket()
        if small:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        found.connect(("127.0.0.1", self.port))
        found.sendall(f"GET {path} HTTP/1.1\r\nHost: portal\r\n\r\n".encode() if sends is None else sends)
        return found


@pytest_asyncio.fixture
async def served(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    monkeypatch.setattr(broadcaster, "KEEPALIVE_S", 0.2)
    await _all_threads()
    desk = Desk()
    streams = desk.live()
    await streams.start()
    listening = socket.create_server(("127.0.0.1", 0))
    found = Served(streams, desk, listening.getsockname()[1])
    server = uvicorn.Server(uvicorn.Config(found, lifespan="off", log_level="error", timeout_graceful_shutdown=1))  # type: ignore[arg-type]
    task = asyncio.create_task(server._serve([listening]))
    await until(lambda: server.started and streams.listening.is_set())
    yield found
    await streams.stop()
    server.should_exit = True
    async with asyncio.timeout(PATIENCE_S):
        await task


async def _all_threads() -> None:
    """An executor begins another thread whenever none has said yet that it is idle: all are there before one counts."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS))
    together = threading.Barrier(THREADS)
    await asyncio.gather(*(asyncio.to_thread(together.wait) for _ in range(THREADS)))


def by_fin(one: socket.socket) -> None:
    one.close()


def by_reset(one: socket.socket) -> None:
    """As a process that is killed, or a machine that comes back and knows nothing of it."""
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    one.close()


def held() -> tuple[int, int, int]:
    """Descriptors, tasks and threads of this process."""
    return len(os.listdir("/proc/self/fd")), len(asyncio.all_tasks()), threading.active_count()


async def until_back(before: tuple[int, int, int]) -> None:
    try:
        await until(lambda: all(now <= then + SLACK for now, then in zip(held(), before, strict=True)))
    except TimeoutError:
        pytest.fail(f"descriptors, tasks, threads: {before} before, {held()} now")


async def test_five_hundred_that_come_and_go_leave_nothing(served: Served) -> None:
    """Streams, waiting calls and unfinished requests, ended by either side, silently or not."""
    asks = [
        {"path": f"/{A}"},
        {"path": f"/{B}"},
        {"path": f"/wait/{A}"},
        {"path": "/never-there"},
        {"path": "", "sends": b"GET /%s HTTP/1.1\r\nHost: por" % A.encode()},
        {"path": "", "sends": b""},
    ]
    kinds = itertools.cycle(itertools.product(asks, (by_fin, by_reset)))
    warm = served.connect(f"/{A}")
    await until(lambda: len(served.streams._viewers) == 1)
    warm.close()
    await until(lambda: not served.streams._viewers)
    before, patterns = held(), await asyncio.to_thread(subscriptions, os.getpid())

    for _round in range(10):
        pairs = [(served.connect(**ask), leave) for ask, leave in itertools.islice(kinds, 50)]  # type: ignore[arg-type]
        await until(lambda: len(served.streams._viewers) >= 20)
        served.desk.shown[A] = {"state_runs": b"%d" % _round}
        await hint(A)
        assert held()[0] > before[0] + 50
        for one, leave in pairs:
            leave(one)
        await until(lambda: not served.streams._viewers)

    await until_back(before)
    await until(lambda: (served.streams._topics, served.streams._viewers, served.streams._waiting) == ({}, set(), {}))
    assert await asyncio.to_thread(subscriptions, os.getpid()) == patterns == 1, "one, whoever watches"


async def test_who_never_reads_is_cut_off(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that reads meanwhile misses nothing."""
    monkeypatch.setattr(backpressure, "STALL_LIMIT_S", 0.5)
    # The kernel would do the same for us a moment later.
    monkeypatch.setattr(backpressure.SendWithTimeout, "_notice_silence", lambda self: None)
    before = held()
    deaf = [served.connect(f"/{A}", small=True) for _ in range(20)]
    await until(lambda: len(served.streams._viewers) == 20)
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port, limit=4 * MUCH)
    writer.write(b"GET /%s HTTP/1.1\r\nHost: portal\r\n\r\n" % A.encode())
    for number in range(3):
        served.desk.shown[A] = {"state_runs": b"%d" % number * MUCH}
        await hint(A)
        async with asyncio.timeout(PATIENCE_S):
            await reader.readuntil(b"%d\n\n" % number)
    await until(lambda: len(served.streams._viewers) == 1)
    # What is left are the clients' own ends, and both ends of the one that reads.
    await until(lambda: held()[0] <= before[0] + len(deaf) + 2 + SLACK)
    writer.close()
    for one in deaf:
        one.close()
    await until(lambda: not served.streams._viewers)
    await until_back(before)


async def test_the_kernel_ends_what_confirms_nothing(served: Served) -> None:
    """A machine that was switched off sends no word. What is sent to it meanwhile is confirmed within the limit, or the
    connection ends.
    """
    seen: list[int] = []
    ordinary = backpressure.SendWithTimeout._notice_silence

    def looks(self: backpressure.SendWithTimeout) -> None:
        ordinary(self)
        assert self._transport is not None
        found = self._transport.get_extra_info("socket")
        seen.append(found.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(backpressure.SendWithTimeout, "_notice_silence", looks)
        one = served.connect(f"/{A}")
        await until(lambda: bool(seen))
    one.close()
    assert seen == [int(backpressure.STALL_LIMIT_S * 1000)]
    assert backpressure.STALL_LIMIT_S <= 60
