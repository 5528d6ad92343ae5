"""A relay in front of PostgreSQL that counts statements: what a process really sends, whichever code wrote it.

A statement is an Execute or a simple Query of PostgreSQL's protocol; BEGIN and COMMIT are statements too.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit, urlunsplit

# In place of a version, a client's first message may ask for encryption: it gets one byte, and the client sends again.
ASKS_FOR_ENCRYPTION = (80877103, 80877104)


@dataclass
class Wire:
    """`url`: the database, through the relay. `statements`: the number sent on all connections until now."""

    url: str
    statements: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self) -> None:
        with self._lock:
            self.statements += 1


@contextlib.contextmanager
def counted(database_url: str) -> Iterator[Wire]:
    address = urlsplit(database_url)
    with socket.create_server(("127.0.0.1", 0)) as server:
        user, _, _ = address.netloc.rpartition("@")
        port = server.getsockname()[1]
        wire = Wire(urlunsplit(address._replace(netloc=f"{user}@127.0.0.1:{port}")))
        to = (address.hostname or "127.0.0.1", address.port or 5432)
        threading.Thread(target=_accept, args=(server, to, wire), daemon=True).start()
        yield wire
        # A thread in accept() is not woken by close() alone.
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)


def _accept(server: socket.socket, to: tuple[str, int], wire: Wire) -> None:
    with contextlib.suppress(OSError):  # the connection is closed
        while True:
            client, _ = server.accept()
            upstream = socket.create_connection(to)
            for one in (client, upstream):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for way in ((client, upstream, _Reader(wire)), (upstream, client, None)):
                threading.Thread(target=_relay, args=way, daemon=True).start()


def _relay(source: socket.socket, target: socket.socket, reader: _Reader | None) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            if reader:
                reader.read(data)
            target.sendall(data)
    for one in (source, target):
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


class _Reader:
    """Splits a client's bytes into messages: a kind (except in the first message), a length, a body."""

    def __init__(self, wire: Wire) -> None:
        self._wire, self._left, self._is_started = wire, b"", False

    def read(self, data: bytes) -> None:
        self._left += data
        while (found := self._next()) is not None:
            if found in (b"E", b"Q"):
                self._wire.add()

    def _next(self) -> bytes | None:
        """Removes the next whole message and returns its kind; b"" for one without a kind; None if it is incomplete."""
        at = 1 if self._is_started else 0
        if len(self._left) < at + 4:
            return None
        (length,) = struct.unpack_from("!I", self._left, at)
        if len(self._left) < at + length:
            return None
        if not self._is_started:
            (code,) = struct.unpack_from("!I", self._left, 4)
            self._is_started = code not in ASKS_FOR_ENCRYPTION
        kind, self._left = self._left[:at], self._left[at + length :]
        return kind
