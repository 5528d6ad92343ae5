"""What the gateway's authorization request before every request to a notebook costs, at 200 a second on one core.

A doors process of its own, bound to one core, on its own database. Each of the 1,000 cookies returns only after its
cached answer has expired, so that every request is an expensive one, which queries the database. The bar is an absolute
time, as a visitor feels it, whatever the load of the machine; `/livez` of the same process at the same rate is the peer
and shows what HTTP itself costs. Statements are counted on the wire, in a pass of their own.
"""

from __future__ import annotations

import os
import secrets
import statistics
from collections.abc import Iterator
from datetime import timedelta

from devcluster.cli.bench import Bar, Context, Figure, benchmark
from tests.perf.servers.database import own_database
from tests.perf.servers.served import served
from tests.perf.support.pace import Asked, Pace, p99
from tests.perf.support.wire import Wire, counted

A_SECOND = 200
CONNECTIONS = 16
ROUNDS = 6
ROUND_S = 2
NOTEBOOKS = 50
SESSIONS = 1000
DOMAIN = "notebooks.localhost"
AT_MOST_MS = 20
PEER = "/livez of the same process"
COUNTED_REQUESTS = 100
GATEWAY = "/gateway/authorize"

Headers = dict[str, str]


@benchmark("open", f"the gateway's question at {A_SECOND} requests/s on one core, over a plain answer", cluster=False)
def open_(context: Context) -> Iterator[Figure]:
    services = context.services
    with own_database("open", database_url=services["database_url"], redis_url=services["redis_url"]):
        asked = _sessions()
        one_core = {min(os.sched_getaffinity(0))}
        with served(cores=one_core, NOTEBOOKS_DOMAIN=DOMAIN) as doors:
            ours, peer = _measure(doors.port, asked)
        with (
            counted(os.environ["DATABASE_URL"]) as wire,
            served(cores=one_core, NOTEBOOKS_DOMAIN=DOMAIN, DATABASE_URL=wire.url) as doors,
        ):
            statements = _count(doors.port, asked, wire)
    p50 = [(statistics.median(one), statistics.median(other)) for one, other in zip(ours, peer, strict=True)]
    slowest = [(p99(one), p99(other)) for one, other in zip(ours, peer, strict=True)]
    yield Figure("open_p50", "ms", PEER, p50)
    yield Figure("open_p99", "ms", PEER, slowest, Bar("ours", AT_MOST_MS))
    yield Figure("open_p99_over_peer", "ms", PEER, slowest, Bar("delta", AT_MOST_MS))
    yield Figure("open_statements", "a request", "one statement", statements, Bar("ours", 1))


def _measure(port: int, asked: list[Headers]) -> tuple[list[list[float]], list[list[float]]]:
    """Returns milliseconds of each round's requests, the portal's and the peer's."""
    pace, ours, peer = Pace(port, CONNECTIONS), [], []
    for number in range(ROUNDS):
        peer.append(pace.run(lambda _index: Asked("/livez"), A_SECOND, A_SECOND * ROUND_S))
        first = number * A_SECOND * ROUND_S

        def cookie(index: int, first: int = first) -> Asked:
            return Asked(GATEWAY, asked[(first + index) % len(asked)])

        ours.append(pace.run(cookie, A_SECOND, A_SECOND * ROUND_S))
    return ours, peer


def _count(port: int, asked: list[Headers], wire: Wire) -> list[tuple[float, float]]:
    """Statements per request of each round, beside 1. Every request has a cookie that was not seen before."""
    found, one_at_a_time = [], Pace(port, 1)
    for number in range(ROUNDS):
        before = wire.statements
        fresh = asked[number * COUNTED_REQUESTS :]
        took = one_at_a_time.run(lambda index, fresh=fresh: Asked(GATEWAY, fresh[index]), A_SECOND, COUNTED_REQUESTS)
        found.append(((wire.statements - before) / len(took), 1.0))
    return found


def _sessions() -> list[Headers]:
    """The headers that Caddy sends for as many people, who opened notebooks of different teams."""
    from datetime import datetime

    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
    from django.contrib.sessions.backends.db import SessionStore
    from django.db import connections
    from django.utils import timezone

    from cluster.models import Cluster
    from tests.support.rows import make, running
    from workloads.credentials.notebook_token import digest
    from workloads.models import NotebookSession

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
    # It prints its figures when it ends.
    connections.close_all()
    return found
