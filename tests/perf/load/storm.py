"""What follows a restart: 5,000 streams come back at once, and everybody reloads the page at once.

The server of streams is started again while 5,000 people of 50 teams wait; all of them connect at the same moment,
without the random delay that browsers have, and whoever is refused comes back when told to. The peer is an application
that does nothing but send one event. Then the same people reload the home page of their team, 200 times a second.

Content is rendered once for each team and kind of page, whoever asks: PostgreSQL counts the scans of the table of
workloads. The peer is the same server with one viewer of each team and kind of page. Each viewer's right to see it is
checked apart.
"""

from __future__ import annotations

import contextlib
import heapq
import re
import selectors
import socket
import time
from collections.abc import Iterator, Sequence
from typing import Any

from devcluster.cli.bench import Bar, Context, Figure, benchmark
from tests.perf.servers.database import own_database
from tests.perf.servers.served import DOORS, served, served_by_gunicorn
from tests.perf.streams import BARE, audience_of
from tests.perf.support import pace
from tests.perf.support.viewers import Asked, check_files

TEAMS, EACH = 50, 100
STREAMS = TEAMS * EACH
ROUNDS = 6
BACK_S = 10.0
BACK_WITHIN_S = 120.0
GREETING = 4096
RETRY_AFTER = re.compile(rb"\r\nretry-after: (\d+)\r\n.*\r\n\r\n", re.IGNORECASE | re.DOTALL)
RELOADS_PER_S = 200
RELOADS = 2000
CONNECTIONS = 64
RELOAD_P99_MS = 500.0
# Whoever is the first viewer of a page during a rendering of its team has another one.
SCANS_RATIO = 2.0
SCANS = """
    SELECT coalesce(sum(seq_scan) + sum(idx_scan), 0)::bigint FROM pg_stat_user_tables
     WHERE relname = 'workloads_workload'"""


@benchmark("storm", f"{STREAMS:,} streams that come back at once; 200 reloads of home a second", cluster=False)
def storm(context: Context) -> Iterator[Figure]:
    services = context.services
    check_files(STREAMS)
    with own_database("storm", database_url=services["database_url"], redis_url=services["redis_url"]):
        asked = audience_of(TEAMS, EACH)
        bare = [Asked("/stream", one.cookie) for one in asked]
        first = list({one.path: one for one in asked}.values())
        rounds, scans = [], []
        for _ in range(ROUNDS):
            before = _scans()
            ours = _back(DOORS, asked)
            after = _scans()
            _back(DOORS, first)
            scans.append((float(after - before), float(_scans() - after)))
            rounds.append((ours, _back(BARE, bare)))
        yield Figure("storm_streams_back_p99", "s", "a bare ASGI application", rounds, Bar("ours", BACK_S))
        yield Figure("storm_scans_of_workloads", "scans", "one viewer of each page", scans, Bar("ratio", SCANS_RATIO))
        with served_by_gunicorn() as web:
            reloads = [_reload(web.port, asked) for _ in range(ROUNDS)]
    refused = [(share, 0.0) for share, _ in reloads]
    yield Figure("storm_reload_refused", "of all reloads", "none", refused, Bar("ours", 0))
    answered = [(p99_ms, RELOAD_P99_MS) for _, p99_ms in reloads]
    yield Figure("storm_reload_p99", "ms of those answered", "the limit", answered, Bar("ours", RELOAD_P99_MS))


def _back(application: str, asked: Sequence[Asked]) -> float:
    """The 99th percentile of the time until a viewer has its first event, in seconds since all connected. Who is
    refused comes back when told to.
    """
    with served(application) as server, selectors.DefaultSelector() as selector, contextlib.ExitStack() as open_now:
        began = time.perf_counter()
        greeted, took = [b""] * len(asked), list[float]()
        # (moment, viewer)
        waiting = [(began, index) for index in range(len(asked))]

        def connect(index: int) -> None:
            found = open_now.enter_context(socket.create_connection(("127.0.0.1", server.port), BACK_WITHIN_S))
            found.sendall(asked[index].request())
            found.setblocking(False)
            greeted[index] = b""
            selector.register(found, selectors.EVENT_READ, index)

        while len(took) < len(asked) and time.perf_counter() - began < BACK_WITHIN_S:
            while waiting and waiting[0][0] <= time.perf_counter():
                connect(heapq.heappop(waiting)[1])
            for key, _ in selector.select(0.05 if waiting else 1.0):
                index: Any = key.data
                data = key.fileobj.recv(1 << 18)  # type: ignore[union-attr]
                text = greeted[index] = (greeted[index] + data)[-GREETING:]
                if b"event:" in text:
                    took.append(time.perf_counter() - began)
                elif found := RETRY_AFTER.search(text):
                    heapq.heappush(waiting, (time.perf_counter() + int(found[1]), index))
                elif data:
                    continue
                else:
                    raise AssertionError(f"a stream ended: {text[:300]!r}")
                selector.unregister(key.fileobj)
        assert len(took) == len(asked), f"{len(took)} of {len(asked)} streams were back in {BACK_WITHIN_S:.0f} s"
        return pace.p99(took)


def _reload(port: int, asked: Sequence[Asked]) -> tuple[float, float]:
    """The part that was told to come back later, and the 99th percentile of the others, in milliseconds."""
    homes = [one for one in asked if "?" not in one.path]

    def home(index: int) -> pace.Asked:
        one = homes[index * 7 % len(homes)]
        team = one.path.rpartition("/")[2]
        return pace.Asked(f"/teams/{team}", {"Cookie": one.cookie, "Host": "localhost"})

    sent = pace.Pace(port, CONNECTIONS, expected=(200, 503))
    sent.run(home, RELOADS_PER_S, RELOADS)
    took = [ms for status, ms in sent.answers if status == 200]
    return 1 - len(took) / RELOADS, pace.p99(took)


def _scans() -> int:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(SCANS)
        (found,) = cursor.fetchone()
    connection.close()
    return int(found)
