"""Half an hour of ordinary work while 200 browsers are left open: no process of the portal grows.

Every few seconds a person launches, stops or deletes a job through the API, and others read pages. Every second browser
sleeps: it reads nothing of its stream. One browser a second disappears and another one takes its place, so that each
has been replaced several times at the end.

The peer of each figure is the same figure of the first five minutes. Counted at the end in database and cluster: one
run for each accepted launch, and no Job of a deleted one.
"""

from __future__ import annotations

import collections
import http.client
import json
import random
import selectors
import socket
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from devcluster.cli.bench import Bar, Context, Figure, benchmark
from devcluster.processes.console import note
from tests.perf.servers.database import database_of
from tests.perf.support import pace, processes
from tests.perf.support.cluster.crowd import Crowd, Person
from tests.perf.support.viewers import Asked
from tests.support.waiting import wait_until

TEAMS, EACH = 10, 20
BROWSERS = TEAMS * EACH
WINDOWS, WINDOW_S = 6, 300.0
SAMPLE_S = 15.0
PAGES_PER_S = 4
READERS = 4
PAGES = ("/teams/{team}", "/catalog", "/teams/{team}/launch", "/teams/{team}/activity", "/history")
CALLS = ("/api/v1/workloads?team={team}", "/api/v1/teams/{team}/live", "/api/v1/classes")
LAUNCH_S = 5.0
# So many are there at the same time; then the oldest is deleted.
WORKLOADS = 24
REOPENED_S = 1.0
PORTAL = ("web", "doors", "worker", "beat", "watcher", "gateway")
FIRST = "its first five minutes"
GROWTH = 1.05
# The spread of this percentile between two windows without any growth.
P99_GROWTH = 1.2
# A figure compares two windows once; this is the smallest number of rounds.
ROUNDS = 6
GONE_WITHIN_S = 120.0


@benchmark("life", f"half an hour of ordinary work while {BROWSERS} browsers are left open")
def life(context: Context) -> Iterator[Figure]:
    with database_of(context.demo):
        crowd = Crowd("bench-life", teams=TEAMS, each=EACH, units=2)
        try:
            windows = _live(context, crowd)
        finally:
            crowd.clear(context.admin)
    first, last = windows[0], windows[-1]
    for name in PORTAL:
        resident = last.resident_mib[name], first.resident_mib[name]
        yield _figure(f"life_resident_of_{name}", "MiB", statistics.median, *resident)
        yield _figure(f"life_files_of_{name}", "open files", max, last.files[name], first.files[name])
    yield _figure("life_connections", "connections to PostgreSQL", max, last.connections, first.connections)
    yield _figure("life_page_p99", "ms", pace.p99, last.page_ms, first.page_ms, at_most=P99_GROWTH)


def _figure(
    name: str,
    unit: str,
    of: Callable[[list[float]], float],
    last: list[float],
    first: list[float],
    at_most: float = GROWTH,
) -> Figure:
    return Figure(name, unit, FIRST, [(of(last), of(first))] * ROUNDS, Bar("ratio", at_most))


@dataclass
class _Window:
    """Samples of five minutes, by process."""

    resident_mib: dict[str, list[float]] = field(default_factory=lambda: collections.defaultdict(list))
    files: dict[str, list[float]] = field(default_factory=lambda: collections.defaultdict(list))
    connections: list[float] = field(default_factory=list)
    page_ms: list[float] = field(default_factory=list)

    def sample(self, pids: dict[str, int]) -> None:
        for name, pid in pids.items():
            self.resident_mib[name].append(processes.resident_mib(pid))
            self.files[name].append(processes.open_files(pid))
        self.connections.append(_connections())


def _live(context: Context, crowd: Crowd) -> list[_Window]:
    portal = urlsplit(context.demo["portal_url"])
    assert portal.port is not None
    pids = {name: context.demo["process_ids"][name] for name in PORTAL}
    windows = []
    pages = pace.Pace(portal.port, READERS)
    requests = round(PAGES_PER_S * WINDOW_S)
    with _Browsers(portal.port, portal.netloc, crowd.people), _Work(portal.port, portal.netloc, crowd) as work:
        # What is loaded at the first use of a page is not growth.
        pages.rate(_page(portal.netloc, crowd, 0), len(PAGES) * len(crowd.people))
        for number in range(WINDOWS):
            window = _Window()
            with ThreadPoolExecutor(1) as one:
                reading = one.submit(pages.run, _page(portal.netloc, crowd, number * requests), PAGES_PER_S, requests)
                while not reading.done():
                    window.sample(pids)
                    with suppress(TimeoutError):
                        reading.result(SAMPLE_S)
                window.page_ms = reading.result()
            windows.append(window)
            resident = (f"{name} {statistics.median(window.resident_mib[name]):.0f}" for name in PORTAL)
            note(f"{(number + 1) * WINDOW_S / 60:.0f} minutes, MiB: {', '.join(resident)}")
    work.check(context.admin)
    return windows


def _page(host: str, crowd: Crowd, begin: int) -> Callable[[int], pace.Asked]:
    def page(index: int) -> pace.Asked:
        number = begin + index
        person = crowd.people[number % len(crowd.people)]
        team, headers = person.team, {**person.headers, "Host": host}
        paths = CALLS if person.has_token else PAGES
        path = paths[number // len(crowd.people) % len(paths)]
        return pace.Asked(path.format(team=team), headers)

    return page


def _connections() -> int:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
        return int(cursor.fetchone()[0])


class _Thread:
    """`turn` is called again and again until the end of the block; what it raises is raised there."""

    def __init__(self) -> None:
        self._is_over, self._error = threading.Event(), list[BaseException]()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def turn(self) -> None:
        raise NotImplementedError

    def _run(self) -> None:
        try:
            while not self._is_over.is_set():
                self.turn()
        except BaseException as error:
            self._error.append(error)

    def __enter__(self) -> Any:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join(60)
        if self._error:
            raise self._error[0]


class _Browsers(_Thread):
    """Event streams of people; every second one is never read."""

    def __init__(self, port: int, host: str, people: list[Person]) -> None:
        super().__init__()
        self._address, self._host = ("127.0.0.1", port), host
        self._people = [one for one in people if not one.has_token]
        self._open: collections.deque[socket.socket] = collections.deque()
        self._selector, self._number, self._next_at = selectors.DefaultSelector(), 0, 0.0

    def turn(self) -> None:
        now = time.monotonic()
        if len(self._open) >= BROWSERS and now >= self._next_at:
            self._next_at = now + REOPENED_S
            self._close(self._open.popleft())
        if len(self._open) < BROWSERS:
            self._begin()
        for key, _ in self._selector.select(0.02):
            found: Any = key.fileobj
            with suppress(BlockingIOError):
                try:
                    data = found.recv(1 << 18)
                except ConnectionError:
                    data = b""
                assert not data.startswith(b"HTTP/1.1 ") or data.startswith(b"HTTP/1.1 200 "), data[:300]
                if not data:
                    self._open.remove(found)
                    self._close(found)

    def _begin(self) -> None:
        self._number += 1
        person = self._people[self._number % len(self._people)]
        found = socket.create_connection(self._address, timeout=10)
        asked = Asked(f"/live/{person.team}", person.headers["Cookie"]).request()
        found.sendall(asked.replace(b"Host: localhost", f"Host: {self._host}".encode()))
        found.setblocking(False)
        self._open.append(found)
        if self._number % 2:
            self._selector.register(found, selectors.EVENT_READ)

    def _close(self, found: socket.socket) -> None:
        with suppress(KeyError):
            self._selector.unregister(found)
        found.close()

    def __exit__(self, *about: object) -> None:
        super().__exit__(*about)
        for one in self._open:
            one.close()


class _Work(_Thread):
    """Launches a job every few seconds, stops some of them, and deletes the oldest."""

    def __init__(self, port: int, host: str, crowd: Crowd) -> None:
        super().__init__()
        self._client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self._host, self._crowd = host, crowd
        self._people = [one for one in crowd.people if one.has_token]
        self._dice = random.Random(2026)
        self._there: collections.deque[tuple[Person, str]] = collections.deque()
        self._launched = 0

    def turn(self) -> None:
        person = self._dice.choice(self._people)
        self._launched += 1
        name = f"life-{self._launched:04}"
        work = {"kind": "job", "gpu_class": self._crowd.gpu_class.slug, "units": 1, "image": "PyTorch"}
        self._ask("POST", "", person, {**work, "name": name, "command": ["train"]})
        self._there.append((person, name))
        if self._launched % 3 == 0:
            stopped, name = self._there[len(self._there) // 2]
            # It may have ended meanwhile.
            self._ask("POST", f"/{name}/stop", stopped, refused=409)
        if len(self._there) > WORKLOADS:
            self._delete_oldest()
        self._is_over.wait(LAUNCH_S)

    def _delete_oldest(self) -> None:
        person, name = self._there.popleft()
        self._ask("DELETE", f"/{name}", person)

    def _ask(
        self, method: str, path: str, by: Person, body: dict[str, Any] | None = None, *, refused: int | None = None
    ) -> None:
        headers = {**by.headers, "Host": self._host, "Content-Type": "application/json"}
        sent = json.dumps(body) if body is not None else None
        self._client.request(method, f"/api/v1/workloads{path}?team={by.team}", sent, headers)
        answer = self._client.getresponse()
        text = answer.read()
        assert answer.status < 300 or answer.status == refused, f"{method} {path}: {answer.status} {text[:300]!r}"

    def check(self, admin: Any) -> None:
        """One run for each launch; after everything is deleted, no Job."""
        from workloads.models import Run, Workload

        ours = {"namespace__name__in": self._crowd.teams}
        while self._there:
            self._delete_oldest()
        runs = Run.objects.filter(**{f"workload__{name}": value for name, value in ours.items()})
        assert runs.count() == self._launched, f"{runs.count()} runs of {self._launched} launches"
        left = Workload.objects.filter(deleted_at=None, **ours)
        wait_until(lambda: not left.exists(), within_s=GONE_WITHIN_S, every_s=0.5, what="every workload is deleted")
        jobs = [one for one in admin.list("batch/v1/jobs") if one["metadata"]["namespace"] in self._crowd.teams]
        assert not jobs, f"{len(jobs)} Jobs of deleted workloads"
