"""What the API takes over its SQL: a list, one workload, and a PUT that changes nothing, as CI asks for them.

gunicorn with one process serves the portal, another one a bare application that sends the statements of one recorded
call (`_bare_wsgi`) and its answer. Both are held to one core and asked in turn over the same connections: as fast as
they answer, then both at 0.7 of what the portal managed, and the peer at 0.7 of what it managed itself: the first asks
it for a quarter of what it can. There are 10,000 teams; with 100 it is the same statements.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from devcluster.bench import Bar, Context, Figure, benchmark
from tests.perf._api_ground import Ground
from tests.perf._database import own_database
from tests.perf._pace import Asked, Pace, p99
from tests.perf._recorded import Recorded, keep, recorded
from tests.perf._served import Served, served_by_gunicorn

CONNECTIONS = 4
ROUNDS = 7
A_ROUND = 200
# The slowest hundredth of them is what is asked for: of 200 it would be two, which any hiccup of the machine makes.
PACED = 600
LOAD = 0.7
# At least 0.4 of the peer's rate.
SLOWER = 1 / 0.4
P99_SLOWER = 3
FEW, MANY = 100, 10_000
BARE = "tests.perf._bare_wsgi:application"
PEER = "a bare application with the same SQL"
# The limit of a token is not what is measured.
UNLIMITED = {"API_REQUESTS_PER_MINUTE": "100000000"}


@benchmark("api", "list, get and an idempotent PUT over a bare application with the same SQL")
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
    """Rates as milliseconds a call, since a bar is the most that something may be."""
    core = {min(os.sched_getaffinity(0))}
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "calls"
        keep(calls.values(), kept)
        with (
            served_by_gunicorn(cores=core, **UNLIMITED) as ours,
            served_by_gunicorn(BARE, cores=core, RECORDED=str(kept)) as peer,
        ):
            for name, asked in ground.calls.items():
                rounds = [(_took(ours, asked), _took(peer, asked)) for _ in range(ROUNDS)]
                each = [(1000 / one[0], 1000 / other[0]) for one, other in rounds]
                yield Figure(f"api_{name}", "ms a call", PEER, each, Bar("ratio", SLOWER))
                yield Figure(f"api_{name}_cpu", "ms a call", PEER, [(one[1], other[1]) for one, other in rounds])
                a_second = LOAD * statistics.median(one[0] for one, _ in rounds[1:])
                of_peer = LOAD * statistics.median(other[0] for _, other in rounds[1:])
                loads = ((ours, a_second), (peer, a_second), (peer, of_peer))
                slow = [tuple(_slowest(server, asked, load) for server, load in loads) for _ in range(ROUNDS)]
                yield Figure(f"api_{name}_p99", "ms", PEER, [one[:2] for one in slow], Bar("ratio", P99_SLOWER))
                yield Figure(f"api_{name}_p99_each_at_its_load", "ms", PEER, [(one[0], one[2]) for one in slow])


def _took(server: Served, asked: Asked) -> tuple[float, float]:
    """Calls a second, and milliseconds of processor for each."""
    before = server.cpu_s
    rate = Pace(server.port, CONNECTIONS).rate(lambda _index: asked, A_ROUND)
    return rate, (server.cpu_s - before) * 1000 / A_ROUND


def _slowest(server: Served, asked: Asked, a_second: float) -> float:
    return p99(Pace(server.port, 2 * CONNECTIONS).run(lambda _index: asked, a_second, PACED))
