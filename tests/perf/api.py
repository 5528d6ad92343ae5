"""What the API costs compared with its SQL: a list, one workload, and a PUT that changes nothing, as CI sends them.

gunicorn with one process serves the portal; another one serves a bare application that sends the statements of one
recorded call (`_bare_wsgi`) and its answer. Both are bound to one core and are measured in turn: first as fast as they
answer, then at 70 % load. That load has two readings, each with its own figure: each server at 0.7 of its own rate; and
the peer at the portal's load, which is a third of what the peer can do. There are 10,000 teams; with 100 the statements
are the same.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from devcluster.cli.bench import Bar, Context, Figure, benchmark
from tests.perf.servers.database import own_database
from tests.perf.servers.served import Served, served_by_gunicorn
from tests.perf.support.api_ground import Ground
from tests.perf.support.pace import Asked, Pace, p99
from tests.perf.support.recorded_calls import Recorded, keep, recorded

CONNECTIONS = 4
ROUNDS = 7
TURNS = 5
# 600 requests in all turns, for the p99: with 200 it would be the slowest two, which any hiccup of the machine causes.
A_TURN = 120
LOAD = 0.7
# At least 0.4 of the peer's rate.
SLOWER = 1 / 0.4
P99_SLOWER = 3
FEW, MANY = 100, 10_000
BARE = "tests.perf.servers.bare_wsgi:application"
PEER = "a bare application with the same SQL"
# The rate limit of a token is not measured here.
UNLIMITED = {"API_REQUESTS_PER_MINUTE": "100000000"}


@benchmark("api", "list, get and an idempotent PUT over a bare application with the same SQL", cluster=False)
def api(context: Context) -> Iterator[Figure]:
    from django.db import connections

    services = context.services
    with own_database("api", database_url=services["database_url"], redis_url=services["redis_url"]):
        ground = Ground()
        counts = {}
        for teams in (FEW, MANY):
            ground.fill(teams)
            calls = {name: recorded(asked) for name, asked in ground.calls.items()}
            counts[teams] = {name: len(call.statements) for name, call in calls.items()}
        assert counts[FEW] == counts[MANY], f"statements of each call: {counts}"
        connections.close_all()
        yield from _figures(ground, calls)


def _figures(ground: Ground, calls: Mapping[str, Recorded]) -> Iterator[Figure]:
    """Gives rates as milliseconds a call, since a bar is an upper limit."""
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "calls"
        keep(calls.values(), kept)
        rounds = [_round(ground, kept) for _ in range(ROUNDS)]
    for name in ground.calls:
        found = [one[name] for one in rounds]
        yield Figure(f"api_{name}", "ms a call", PEER, [one.ms for one in found], Bar("ratio", SLOWER))
        yield Figure(f"api_{name}_cpu", "ms a call", PEER, [one.cpu_ms for one in found])
        yield Figure(f"api_{name}_p99", "ms", PEER, [one.p99 for one in found], Bar("ratio", P99_SLOWER))
        as_many = [one.p99_as_many_calls for one in found]
        yield Figure(f"api_{name}_p99_as_many_calls", "ms", PEER, as_many, Bar("ratio", P99_SLOWER))


@dataclass(frozen=True)
class _Round:
    """Each pair is (portal, peer)."""

    ms: tuple[float, float]
    cpu_ms: tuple[float, float]
    p99: tuple[float, float]
    p99_as_many_calls: tuple[float, float]


def _round(ground: Ground, kept: Path) -> dict[str, _Round]:
    """Starts new processes: the memory layout of a process makes it up to 10 % faster or slower for its whole life."""
    core = {min(os.sched_getaffinity(0))}
    with (
        served_by_gunicorn(cores=core, **UNLIMITED) as ours,
        served_by_gunicorn(BARE, cores=core, RECORDED=str(kept)) as peer,
    ):
        return {name: _measured(ours, peer, asked) for name, asked in ground.calls.items()}


def _measured(ours: Served, peer: Served, asked: Asked) -> _Round:
    # The first calls prepare statements and fill caches.
    for server in (ours, peer):
        _took(server, asked)
    turns: list[tuple[tuple[float, float], tuple[float, float]]] = []
    paced: list[list[float]] = [[], [], []]
    for _ in range(TURNS):
        # 70 % of the rate just measured: a virtual core may be 20 % slower some seconds later.
        turn = _took(ours, asked), _took(peer, asked)
        turns.append(turn)
        of_ours, of_peer = (LOAD * 1000 / ms for ms, _ in turn)
        for found, server, load in zip(paced, (ours, peer, peer), (of_ours, of_peer, of_ours), strict=True):
            found += Pace(server.port, 2 * CONNECTIONS).run(lambda _index: asked, load, A_TURN)
    (our_ms, our_cpu_ms), (its_ms, its_cpu_ms) = (
        (statistics.median(ms for ms, _ in found), statistics.median(cpu_ms for _, cpu_ms in found))
        for found in zip(*turns, strict=True)
    )
    slowest, its_slowest, its_slowest_at_ours = map(p99, paced)
    return _Round(
        ms=(our_ms, its_ms),
        cpu_ms=(our_cpu_ms, its_cpu_ms),
        p99=(slowest, its_slowest),
        p99_as_many_calls=(slowest, its_slowest_at_ours),
    )


def _took(server: Served, asked: Asked) -> tuple[float, float]:
    """Returns milliseconds and processor milliseconds for a call."""
    before = server.cpu_s
    a_second = Pace(server.port, CONNECTIONS).rate(lambda _index: asked, A_TURN)
    return 1000 / a_second, (server.cpu_s - before) * 1000 / A_TURN
