"""Requests and open streams that a portal must serve while its processes are replaced, and the Services between them.

All in one thread with an event loop of its own. Times are seconds since the start.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from devcluster.processes.ports import free_port

ANSWERS_WITHIN_S = 15.0
# As browsers do: EventSource waits before it connects again.
AGAIN_AFTER_S = 1.0


@dataclass
class Service:
    """What a Service of Kubernetes does: a new connection goes to the process that is ready, open ones stay."""

    port: int = field(default_factory=free_port)
    backend: int = 0

    async def serve(self) -> asyncio.Server:
        return await asyncio.start_server(self._forward, "127.0.0.1", self.port, backlog=512)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            behind, to = await asyncio.open_connection("127.0.0.1", self.backend)
        except OSError:
            writer.transport.abort()
            return
        await asyncio.gather(_pump(reader, to), _pump(behind, writer))
        for one in (writer, to):
            one.close()


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(65536):
            target.write(data)
            await target.drain()
    with suppress(OSError, RuntimeError):
        target.write_eof()


@dataclass(frozen=True)
class Call:
    path: str
    headers: tuple[tuple[str, str], ...]
    method: str = "GET"
    body: bytes = b""
    expected: int = 200


@dataclass
class Traffic:
    """`reconnects`: by stream. `failures`: (seconds, what, why) of requests without the expected answer."""

    gateway: int
    host: str
    per_s: float
    calls: Sequence[Call] = ()
    streams: Sequence[Call] = ()
    answered: int = 0
    slowest_s: float = 0.0
    failures: list[tuple[float, str, str]] = field(default_factory=list)
    reconnects: list[int] = field(default_factory=list)
    open_streams: int = 0

    @contextmanager
    def running(self, *services: Service) -> Iterator[Traffic]:
        """The Services from the beginning; requests and streams as soon as `begin` is called."""
        ready = threading.Event()
        thread = threading.Thread(target=lambda: asyncio.run(self._main(services, ready)), daemon=True)
        thread.start()
        assert ready.wait(10)
        try:
            yield self
        finally:
            self._loop.call_soon_threadsafe(self._ended.set)
            thread.join(30)

    def begin(self, calls: Sequence[Call], streams: Sequence[Call]) -> None:
        self.calls, self.streams = calls, streams
        self._loop.call_soon_threadsafe(self._begun.set)

    def story(self) -> str:
        reasons = ", ".join(f"{number} × {why}" for why, number in Counter(why for *_, why in self.failures).items())
        return (
            f"{self.answered:,} answered, slowest {self.slowest_s:.1f} s, {len(self.failures)} failed ({reasons})"
            f" {self.failures[:10]}; {self.open_streams} streams open, {sum(self.reconnects)} opened again, at most"
            f" {max(self.reconnects, default=0)} times each"
        )

    async def _main(self, services: Sequence[Service], ready: threading.Event) -> None:
        self._loop, self._begun, self._ended = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
        servers = [await one.serve() for one in services]
        ready.set()
        both = [asyncio.create_task(one.wait()) for one in (self._begun, self._ended)]
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        self._from = time.monotonic()
        self.reconnects = [0] * len(self.streams)
        tasks = {asyncio.create_task(self._listen(number, call)) for number, call in enumerate(self.streams)}
        sent = 0
        while self.calls and not self._ended.is_set():
            task = asyncio.create_task(self._ask(self.calls[sent % len(self.calls)]))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            sent += 1
            # By the clock, so that slow answers do not lower the rate.
            due = self._from + sent / self.per_s - time.monotonic()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), max(due, 0.001))
        # Requests that are on their way are waited for; streams are not.
        await asyncio.sleep(2)
        for task in [*tasks, *both]:
            task.cancel()
        for server in servers:
            server.close()

    async def _ask(self, call: Call) -> None:
        began = time.monotonic()
        try:
            async with asyncio.timeout(ANSWERS_WITHIN_S):
                reader, writer = await self._send(call)
                try:
                    status = await _status(reader)
                    await reader.read()
                finally:
                    writer.close()
        except (OSError, ValueError, TimeoutError, asyncio.IncompleteReadError) as error:
            self._failed(call, f"{type(error).__name__} {error}")
            return
        self.slowest_s = max(self.slowest_s, time.monotonic() - began)
        if status == call.expected:
            self.answered += 1
        else:
            self._failed(call, str(status))

    async def _listen(self, number: int, call: Call) -> None:
        while True:
            try:
                reader, writer = await self._send(call)
            except OSError as error:
                self._failed(call, f"stream: {error}")
            else:
                await self._follow(call, reader)
                writer.close()
            if self._ended.is_set():
                return
            self.reconnects[number] += 1
            await asyncio.sleep(AGAIN_AFTER_S)

    async def _follow(self, call: Call, reader: asyncio.StreamReader) -> None:
        try:
            if (status := await _status(reader)) != 200:
                self._failed(call, f"stream: {status}")
                return
            self.open_streams += 1
            try:
                while await reader.read(65536):
                    pass
            finally:
                self.open_streams -= 1
        except (OSError, ValueError, asyncio.IncompleteReadError) as error:
            self._failed(call, f"stream: {type(error).__name__} {error}")

    async def _send(self, call: Call) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.gateway)
        headers = [("Host", self.host), ("Connection", "close"), *call.headers]
        if call.body:
            headers.append(("Content-Length", str(len(call.body))))
        head = "".join(f"{name}: {value}\r\n" for name, value in headers)
        writer.write(f"{call.method} {call.path} HTTP/1.1\r\n{head}\r\n".encode() + call.body)
        await writer.drain()
        return reader, writer

    def _failed(self, call: Call, why: str) -> None:
        if not self._ended.is_set():
            self.failures.append((round(time.monotonic() - self._from, 1), f"{call.method} {call.path}", why))


async def _status(reader: asyncio.StreamReader) -> int:
    head = await reader.readuntil(b"\r\n\r\n")
    return int(head.split(b" ", 2)[1])


def json_call(method: str, path: str, body: object, token: str, expected: int) -> Call:
    headers = (("Authorization", f"Bearer {token}"), ("Content-Type", "application/json"))
    return Call(path, headers, method, json.dumps(body).encode(), expected)
