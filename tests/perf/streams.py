"""What an idle stream costs: resident memory of doors compared with an application that does nothing else.

Both run under the same server with its production options, in a new process for every round: 1,000 people of 50 teams
have their team's home or one workload's page open, or as many connections are open to an application that sent one
event. The memory before the first stream is not counted. The round is long enough for every viewer's access to be
checked.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

from devcluster.cli.bench import Bar, Context, Figure, benchmark
from tests.perf.servers.database import own_database
from tests.perf.servers.served import DOORS, served
from tests.perf.support.viewers import Asked, Viewers, check_files

BARE = "tests.perf.servers.bare_asgi:application"
TEAMS, EACH = 50, 20
STREAMS = TEAMS * EACH
ROUNDS = 6
# Every viewer's access is checked in this time.
SETTLES_S = 6.0
RATIO = 2


@benchmark("streams", f"memory of each of {STREAMS:,} idle streams over a bare ASGI application", cluster=False)
def streams(context: Context) -> Iterator[Figure]:
    services = context.services
    check_files(STREAMS)
    with own_database("streams", database_url=services["database_url"], redis_url=services["redis_url"]):
        asked = audience_of(TEAMS, EACH)
        bare = [Asked("/stream", one.cookie) for one in asked]
        rounds = [(_kib_each(DOORS, asked), _kib_each(BARE, bare)) for _ in range(ROUNDS)]
    yield Figure("stream_memory", "KiB", "a bare ASGI application", rounds, Bar("ratio", RATIO))


def _kib_each(application: str, asked: Sequence[Asked]) -> float:
    with served(application) as server:
        # What the first streams load (templates, threads, connections) is not what the thousandth costs.
        with Viewers(server.port, asked[:EACH]):
            pass
        before = server.resident_kib
        with Viewers(server.port, asked) as viewers:
            threading.Event().wait(SETTLES_S)
            assert not viewers.gone, f"{viewers.gone} streams ended"
            return (server.resident_kib - before) / len(asked)


def audience_of(teams: int, each: int) -> list[Asked]:
    """Rows of `teams` teams with work that is queued, and a stream request of each of their people."""
    from datetime import timedelta

    from django.db import connections
    from django.utils import timezone

    from cluster.models import Cluster, MirrorEpoch, MirrorKind
    from tests.load.long_queue import long_queue
    from tests.perf.support.teams import audience
    from workloads.models import Workload

    cluster = Cluster.objects.create(name="main", notebooks_domain="notebooks.localhost")
    namespaces = long_queue(cluster, teams=teams, each=4)
    Workload.objects.filter(name="waits-0").update(name="seen")
    # No watcher sends heartbeats here; nothing may become stale meanwhile.
    later = timezone.now() + timedelta(hours=1)
    MirrorEpoch.objects.update(beat_at=later)
    MirrorKind.objects.update(heard_at=later)
    found = [one for team in audience([one.name for one in namespaces], each=each) for one in team.asked]
    # The servers start while this process has no connection open.
    connections.close_all()
    return found
