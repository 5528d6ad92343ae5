"""A viewer of a team's page while the cluster, the watcher or the database fails: it keeps the stream as a browser
does, opens it again when it breaks, and reads the same snapshot as JSON. Both come from the doors process.
"""

from __future__ import annotations

import http.client
import json
import re
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

OLD = "Outdated, last updated"
UNREAD = "The cluster has not been read yet"
AGAIN_S = 0.5
_TAGS = re.compile(r"<[^>]*>")


@dataclass(frozen=True)
class Sight:
    """One fragment as received. `is_stale`: its text says that the data is old, or that nothing is known."""

    at: float
    event: str
    text: str

    @property
    def is_stale(self) -> bool:
        return OLD in self.text or UNREAD in self.text


@dataclass
class Onlooker:
    """`sights`: all fragments of the stream, in order; `breaks`: how often the stream broke and was opened again."""

    port: int
    path: str
    headers: Mapping[str, str]
    sights: list[Sight] = field(default_factory=list)
    breaks: int = 0

    def __post_init__(self) -> None:
        self._is_over = threading.Event()
        self._connection: http.client.HTTPConnection | None = None
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Onlooker:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        if self._connection is not None and self._connection.sock is not None:
            self._connection.sock.shutdown(2)
        self._thread.join(10)

    def latest(self, event: str) -> Sight | None:
        return next((one for one in reversed(self.sights) if one.event == event), None)

    def says_stale(self, event: str) -> bool:
        found = self.latest(event)
        return found is not None and found.is_stale

    def ask(self, path: str) -> dict[str, Any] | None:
        """Calls the API as the same person; returns None while there is no good answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request("GET", path, headers=dict(self.headers))
            response = connection.getresponse()
            body = response.read()
            return json.loads(body) if response.status == 200 else None
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def _watch(self) -> None:
        while not self._is_over.is_set():
            with suppress(OSError, http.client.HTTPException, ValueError):
                self._read()
            self.breaks += not self._is_over.is_set()
            self._is_over.wait(AGAIN_S)

    def _read(self) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=40)
        self._connection.request("GET", self.path, headers=dict(self.headers))
        response = self._connection.getresponse()
        event, lines = "", list[str]()
        while raw := response.readline():
            line = raw.decode().rstrip("\n")
            if line.startswith("event: "):
                event, lines = line.removeprefix("event: "), []
            elif line.startswith("data:"):
                lines.append(line.removeprefix("data:"))
            elif not line and event:
                text = " ".join(_TAGS.sub(" ", " ".join(lines)).split())
                self.sights.append(Sight(time.monotonic(), event, text))
                event = ""
        self._connection.close()


@dataclass
class Versions:
    """The versions of the snapshots seen, by kind. Raises AssertionError if a version is older than the one before."""

    seen: dict[str, int] = field(default_factory=dict)

    def note(self, live: Mapping[str, Any]) -> None:
        for kind, version in live["versions"].items():
            if version is not None:
                assert int(version) >= self.seen.get(kind, 0), f"{kind} went back from {self.seen[kind]} to {version}"
                self.seen[kind] = int(version)
