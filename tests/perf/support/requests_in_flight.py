"""Keeps a fixed number of launches in progress, of a team that is not measured: requested, waiting, starting."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from devcluster.demo.http_client import BrowserSession

# From the answer to a launch until it is deleted: as long as a notebook takes to start.
ALOFT_S = 30.0


@dataclass
class Flights:
    number: int
    aloft: int = 0
    _wrong: list[BaseException] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)
    _all_aloft: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def raise_if_wrong(self) -> None:
        if self._wrong:
            raise self._wrong[0]

    def check(self) -> None:
        self.raise_if_wrong()
        assert self.aloft >= self.number, f"{self.aloft} of {self.number} launches are in flight"

    def _count(self, by: int) -> None:
        with self._lock:
            self.aloft += by
            if self.aloft >= self.number:
                self._all_aloft.set()

    def _fly(self, lane: int, visitor: BrowserSession, team: str, work: dict[str, Any]) -> None:
        """Launches the next one before it ends the previous one, so that there are never fewer."""
        # The lanes start one after the other, not at the same moment.
        self._over.wait(lane * ALOFT_S / self.number)
        turn, before = 0, ""
        try:
            while not self._over.is_set():
                name, turn = f"f{lane:02}-{turn}", turn + 1
                _done(visitor.api("POST", f"/api/v1/workloads?team={team}", {**work, "name": name}), 201)
                self._count(1)
                if before:
                    self._count(-1)
                    _done(visitor.api("DELETE", f"/api/v1/workloads/{before}?team={team}"), 202)
                before = name
                self._over.wait(ALOFT_S)
            if before:
                _done(visitor.api("DELETE", f"/api/v1/workloads/{before}?team={team}"), 202)
        except BaseException as error:
            self._wrong.append(error)


@contextlib.contextmanager
def in_flight(
    number: int, *, visit: Callable[[], BrowserSession], team: str, work: dict[str, Any]
) -> Iterator[Flights]:
    """All launches are in progress when the block is entered."""
    flights = Flights(number)
    lanes = [
        threading.Thread(target=flights._fly, args=(lane, visit(), team, work), daemon=True) for lane in range(number)
    ]
    for lane in lanes:
        lane.start()
    try:
        flights._all_aloft.wait(2 * ALOFT_S)
        flights.check()
        yield flights
    finally:
        flights._over.set()
        for lane in lanes:
            lane.join(60)
    flights.raise_if_wrong()


def _done(page: Any, status: int) -> None:
    assert page.status == status, f"{page.url} answered {page.status}: {page.text[:300]}"
