"""A TCP proxy in front of PostgreSQL or Redis that can pause, cut and refuse connections."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType
from urllib.parse import urlsplit, urlunsplit

BYTES = 65_536


class TcpProxy:
    """A proxy on a free port of loopback, open inside the `with` block.

    with TcpProxy.of(database_url) as proxy:
        connect(proxy.url)
        proxy.cut()
    """

    def __init__(self, host: str, port: int, *, url: str = "") -> None:
        self._upstream = (host, port)
        self._original = url
        self._gate = threading.Event()  # not set while paused
        self._gate.set()
        self._lock = threading.Lock()
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._listener: socket.socket | None = None
        self.port = 0

    @classmethod
    def of(cls, url: str) -> TcpProxy:
        parts = urlsplit(url)
        default = {"redis": 6379, "rediss": 6379}.get(parts.scheme, 5432)
        return cls(parts.hostname or "127.0.0.1", parts.port or default, url=url)

    @property
    def url(self) -> str:
        """The original URL, with the proxy's address."""
        parts = urlsplit(self._original)
        login = parts.netloc.rpartition("@")[0]
        return urlunsplit(
            parts._replace(netloc=f"{login}@127.0.0.1:{self.port}" if login else f"127.0.0.1:{self.port}")
        )

    def __enter__(self) -> TcpProxy:
        self._listen()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.refuse()
        self._gate.set()

    def pause(self) -> None:
        """Forwards nothing in either direction until `resume`. Connections stay open; new ones are accepted and
        hang.
        """
        self._gate.clear()

    def resume(self) -> None:
        """Ends `pause` and `refuse`."""
        self._gate.set()
        if self._listener is None:
            self._listen()

    def cut(self) -> None:
        """Resets all open connections. New connections work."""
        with self._lock:
            pairs, self._pairs = self._pairs, set()
        for pair in pairs:
            for end in pair:
                reset(end)

    def refuse(self) -> None:
        """Resets all open connections and stops listening until `resume`: clients get "connection refused"."""
        with self._lock:
            listener, self._listener = self._listener, None
        if listener is not None:
            with suppress(OSError):  # ends accept() in its thread; closing the socket alone does not
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self.cut()

    def _listen(self) -> None:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        listener.listen(128)
        self.port = listener.getsockname()[1]
        with self._lock:
            self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        self._gate.wait()
        try:
            upstream = socket.create_connection(self._upstream, timeout=10)
        except OSError:
            reset(client)
            return
        upstream.settimeout(None)
        pair = (client, upstream)
        with self._lock:
            self._pairs.add(pair)
        back = threading.Thread(target=self._pump, args=(upstream, client), daemon=True)
        back.start()
        self._pump(client, upstream)
        back.join()
        with self._lock:
            self._pairs.discard(pair)
        client.close()
        upstream.close()

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(BYTES):
                self._gate.wait()
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)


def reset(end: socket.socket) -> None:
    """Closes the connection with RST, not FIN: the other side gets an error, not the end of the stream. Wakes a thread
    that reads from the socket.
    """
    with suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        end.shutdown(socket.SHUT_RD)
    end.close()
