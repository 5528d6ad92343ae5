"""Sends requests over kept-alive connections: as fast as they are answered, or at fixed times."""

from __future__ import annotations

import http.client
import statistics
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Asked:
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    method: str = "GET"
    body: bytes | None = None


@dataclass
class Pace:
    """`expected`: the statuses of a right answer. `answers`: (status, milliseconds) of each request."""

    port: int
    connections: int
    expected: Collection[int] = (200,)
    answers: list[tuple[int, float]] = field(default_factory=list)
    _took: list[float] = field(default_factory=list)
    _wrong: list[str] = field(default_factory=list)

    def run(self, asked: Callable[[int], Asked], a_second: float, requests: int) -> list[float]:
        """Milliseconds of each request from its scheduled time, whether or not earlier ones have been answered."""
        begins = time.perf_counter() + 0.2
        self._in_threads(
            lambda first: self._paced(asked, range(first, requests, self.connections), begins, a_second), requests
        )
        return self._took

    def rate(self, asked: Callable[[int], Asked], requests: int) -> float:
        """Answers a second; each connection sends its next request after each answer."""
        began = time.perf_counter()
        self._in_threads(lambda first: self._at_once(asked, range(first, requests, self.connections)), requests)
        return requests / (time.perf_counter() - began)

    def _in_threads(self, work: Callable[[int], None], requests: int) -> None:
        self.answers, self._took, self._wrong = [], [], []
        threads = [threading.Thread(target=work, args=(first,)) for first in range(self.connections)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not self._wrong, f"{self._wrong[0]} ({len(self._wrong)} times)"
        assert len(self._took) == requests, f"{len(self._took)} of {requests} were answered"

    def _paced(self, asked: Callable[[int], Asked], indexes: Iterable[int], begins: float, a_second: float) -> None:
        connection, pause = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10), threading.Event()
        answered = 0.0
        for index in indexes:
            at = begins + index / a_second
            if (early := at - time.perf_counter()) > 0:
                pause.wait(early)
            began = time.perf_counter()
            # A request that waited for the previous answer is timed from its scheduled time; a late start of this
            # client is not counted.
            answered = self._ask(connection, asked(index), at if answered > at else max(began, at))
        connection.close()

    def _at_once(self, asked: Callable[[int], Asked], indexes: Iterable[int]) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        for index in indexes:
            self._ask(connection, asked(index), time.perf_counter())
        connection.close()

    def _ask(self, connection: http.client.HTTPConnection, one: Asked, since: float) -> float:
        connection.request(one.method, one.path, body=one.body, headers=dict(one.headers))
        response = connection.getresponse()
        response.read()
        answered = time.perf_counter()
        self._took.append((answered - since) * 1000)
        self.answers.append((response.status, self._took[-1]))
        if response.status not in self.expected:
            self._wrong.append(f"{one.method} {one.path[:80]}: {response.status}")
        return answered


def p99(values: list[float]) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[98]
