"""What the gateway's question before every request to a notebook takes, at 200 requests a second on one core.

A doors process of its own, held to one core, on a database of its own. Each of the 1,000 cookies comes back only after
its answer is forgotten, so that every request is the dear one, which asks the database. The peer is `/livez` of the
same process at the same pace: what HTTP itself takes here, and what else the machine is busy with.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import psycopg

from devcluster.bench import Bar, Context, Figure, benchmark
from devcluster.processes import free_port
from devcluster.stack import ROOT
from tests.perf._database import own_database

A_SECOND = 200
CONNECTIONS = 16
ROUNDS = 6
ROUND_S = 2
NOTEBOOKS = 50
SESSIONS = 1000
DOMAIN = "notebooks.localhost"
STARTS_WITHIN_S = 30.0
COMMITS = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"

Headers = dict[str, str]


@benchmark("open", f"the gateway's question at {A_SECOND} requests/s on one core, over a plain answer")
def open_(context: Context) -> Iterator[Figure]:
    services = context.services
    with own_database("open", database_url=services["database_url"], redis_url=services["redis_url"]):
        asked = _sessions()
        with _doors() as port:
            ours, peer = _measure(port, asked)
    for name, of, bar in (("open_p50", statistics.median, None), ("open_p99", _p99, Bar("delta", 20))):
        pairs = [(of(one), of(other)) for one, other in zip(ours, peer, strict=True)]
        yield Figure(name, "ms", "/livez of the same process", pairs, bar)


def _p99(values: list[float]) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[98]


def _measure(port: int, asked: list[Headers]) -> tuple[list[list[float]], list[list[float]]]:
    """Milliseconds of each round's requests, ours and the peer's."""
    pace, ours, peer = _Pace(port), [], []
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as database:
        before = _commits(database, after_s=1)
        for number in range(ROUNDS):
            peer.append(pace.run("/livez", lambda _index: {}, expected=200))
            first = number * A_SECOND * ROUND_S

            def cookie(index: int, first: int = first) -> Headers:
                return asked[(first + index) % len(asked)]

            ours.append(pace.run("/gateway/authorize", cookie, expected=200))
        # An idle connection has told its numbers after 10 seconds.
        requests, queries = sum(map(len, ours)), _commits(database, after_s=11) - before
    # A process also looks after itself now and then; one that asked twice would have twice as many.
    assert queries < 1.1 * requests, f"{requests} requests took {queries} queries"
    return ours, peer


def _commits(database: psycopg.Connection, *, after_s: float) -> int:
    """Of everybody in this database."""
    threading.Event().wait(after_s)
    row = database.execute(COMMITS).fetchone()
    assert row is not None
    return int(row[0])


@dataclass
class _Pace:
    """Requests at fixed moments, whether or not earlier ones have been answered; timed from those moments."""

    port: int
    _took: list[float] = field(default_factory=list)
    _wrong: list[str] = field(default_factory=list)

    def run(self, path: str, headers: Callable[[int], Headers], *, expected: int) -> list[float]:
        self._took, self._wrong = [], []
        begins = time.perf_counter() + 0.2
        threads = [
            threading.Thread(target=self._send, args=(path, headers, first, begins, expected))
            for first in range(CONNECTIONS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not self._wrong, f"{path}: {self._wrong[0]} ({len(self._wrong)} times)"
        return self._took

    def _send(self, path: str, headers: Callable[[int], Headers], first: int, begins: float, expected: int) -> None:
        connection, pause = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10), threading.Event()
        for index in range(first, A_SECOND * ROUND_S, CONNECTIONS):
            at = begins + index / A_SECOND
            if (early := at - time.perf_counter()) > 0:
                pause.wait(early)
            began = time.perf_counter()
            connection.request("GET", path, headers=headers(index))
            response = connection.getresponse()
            response.read()
            # From when it was due, unless this side was late itself.
            self._took.append((time.perf_counter() - max(began, at)) * 1000)
            if response.status != expected:
                self._wrong.append(f"{response.status}")
        connection.close()


def _sessions() -> list[Headers]:
    """What Caddy sends along for as many people who opened notebooks of different teams."""
    from datetime import datetime

    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
    from django.contrib.sessions.backends.db import SessionStore
    from django.db import connections
    from django.utils import timezone

    from cluster.models import Cluster
    from tests import make
    from tests.workloads import running
    from workloads.models import NotebookSession
    from workloads.notebook_token import digest

    cluster = Cluster.objects.create(name="main", notebooks_domain=DOMAIN)
    gpu_class = make.gpu_class(cluster)
    until: datetime = timezone.now() + timedelta(hours=1)
    found: list[Headers] = []
    for number in range(NOTEBOOKS):
        team, person = make.tenant(cluster, slug=f"team-{number}"), make.user(f"Person-{number}")
        make.member(team, person)
        notebook = running.workload(team.namespaces.get(), gpu_class, by=person, origin=f"n{number}")
        running.make_ready(notebook)
        session = SessionStore()
        session[SESSION_KEY], session[HASH_SESSION_KEY] = str(person.pk), person.get_session_auth_hash()
        session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
        session.create()
        for _ in range(SESSIONS // NOTEBOOKS):
            cookie = secrets.token_urlsafe(32)
            NotebookSession.objects.create(
                digest=digest(cookie),
                user=person,
                workload=notebook,
                session_key=session.session_key or "",
                expires_at=until,
            )
            found.append({"X-Forwarded-Host": f"n{number}.{DOMAIN}", "Cookie": f"notebook={cookie}"})
    # It tells its numbers at its end.
    connections.close_all()
    return found


@contextlib.contextmanager
def _doors() -> Iterator[int]:
    """Its port. As in production, but for the one core."""
    port = free_port()
    environment = {**os.environ, "NOTEBOOKS_DOMAIN": DOMAIN, "DATABASE_POOL": "true", "LOG_LEVEL": "WARNING"}
    command = [sys.executable, "-m", "uvicorn", "portal.asgi:application", "--port", str(port), "--no-access-log"]
    with tempfile.TemporaryFile() as log:
        process: subprocess.Popen[Any] = subprocess.Popen(
            [*command, "--log-level", "warning"], cwd=ROOT, env=environment, stdout=log, stderr=log
        )
        os.sched_setaffinity(process.pid, {min(os.sched_getaffinity(0))})
        try:
            _await(port, process)
            yield port
        finally:
            process.terminate()
            process.wait(15)


def _await(port: int, process: subprocess.Popen[Any]) -> None:
    deadline, pause = time.monotonic() + STARTS_WITHIN_S, threading.Event()
    while time.monotonic() < deadline and process.poll() is None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        with contextlib.suppress(OSError):
            connection.request("GET", "/livez")
            if connection.getresponse().status == 200:
                return
        connection.close()
        pause.wait(0.1)
    raise TimeoutError(f"doors did not start within {STARTS_WITHIN_S:.0f} s")
