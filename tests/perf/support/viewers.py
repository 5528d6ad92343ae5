"""Many event streams at once, read by one thread as soon as data arrives, as a browser does."""

from __future__ import annotations

import resource
import selectors
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

# Streams opened at the same time; a browser does not wait for another's answer either.
AT_ONCE = 20
OPEN_WITHIN_S = 120.0
# Files that this process and the server need beside a socket for each viewer.
FILES_BESIDE = 200

Heard = Callable[[int, bytes, float], None]


@dataclass(frozen=True)
class Asked:
    path: str
    cookie: str = ""

    def request(self) -> bytes:
        lines = [f"GET {self.path} HTTP/1.1", "Host: localhost", "Accept: text/event-stream", "Cache-Control: no-cache"]
        return "\r\n".join([*lines, f"Cookie: {self.cookie}" if self.cookie else "DNT: 1", "", ""]).encode()


class Viewers:
    """Every viewer has its first event when the block is entered. `heard`: index, data, time."""

    def __init__(self, port: int, asked: Sequence[Asked], heard: Heard | None = None) -> None:
        self._port, self._asked, self._heard = port, asked, heard
        self._sockets: list[socket.socket] = []
        self._selector = selectors.DefaultSelector()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._read, name="viewers", daemon=True)
        self._greeted: dict[int, bytes] = {}
        self._news = threading.Condition()
        self.gone = 0

    def __enter__(self) -> Viewers:
        check_files(len(self._asked))
        self._thread.start()
        for first in range(0, len(self._asked), AT_ONCE):
            for index in range(first, min(first + AT_ONCE, len(self._asked))):
                self._open(index)
            self._until_greeted(first + AT_ONCE)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._is_over.set()
        self._thread.join(10)
        for one in self._sockets:
            one.close()
        self._selector.close()

    def _open(self, index: int) -> None:
        found = socket.create_connection(("127.0.0.1", self._port), timeout=10)
        found.sendall(self._asked[index].request())
        found.setblocking(False)
        self._sockets.append(found)
        self._selector.register(found, selectors.EVENT_READ, index)

    def _until_greeted(self, number: int) -> None:
        wanted = min(number, len(self._asked))
        with self._news:
            done = self._news.wait_for(lambda: self._open_now() >= wanted or self.gone, OPEN_WITHIN_S)
        if self.gone or not done:
            first = next((text for text in self._greeted.values() if b"event:" not in text), b"")
            raise AssertionError(f"{self._open_now()} of {wanted} streams opened, {self.gone} ended: {first[:300]!r}")

    def _open_now(self) -> int:
        return sum(b"event:" in text for text in self._greeted.values())

    def _read(self) -> None:
        while not self._is_over.is_set():
            for key, _events in self._selector.select(0.1):
                index: Any = key.data
                try:
                    data = key.fileobj.recv(1 << 18)  # type: ignore[union-attr]
                except BlockingIOError:
                    continue
                except OSError:
                    data = b""
                at = time.perf_counter()
                if not data:
                    self._selector.unregister(key.fileobj)
                    with self._news:
                        self.gone += 1
                        self._news.notify_all()
                elif b"event:" not in (begun := self._greeted.get(index, b"")):
                    with self._news:
                        self._greeted[index] = (begun + data)[-400:] if b"event:" not in data else b"event:"
                        self._news.notify_all()
                elif self._heard is not None:
                    self._heard(index, data, at)


def check_files(streams: int) -> None:
    """Raises where the limit of open files is too low for this process, with the number that it needs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = streams + FILES_BESIDE
    if soft < needed <= hard or (soft < needed and hard == resource.RLIM_INFINITY):
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    elif soft < needed:
        raise AssertionError(f"{streams} streams take {needed} open files; the limit here is {hard} (see `ulimit -n`).")
