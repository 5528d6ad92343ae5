"""What it costs to find a workload's place while 10,000 wait: 50 teams, each with as many as it may have.

A place is counted in the team's own queue, so that no queue is longer than one team's limit. Django runs in this
process, on its own database; the query is the one that page, list, stream and API use, with its order and exclusions.
The peer is the least that anything about a place costs: one mirrored row by its key. Without a bar: all reads for the
page of one waiting workload, and for a page of the operators' whole queue.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

from devcluster.cli.bench import Bar, Context, Figure, benchmark
from tests.perf.servers.database import own_database

WAITING = 10_000
ROUNDS = 7
REQUESTS = 200
WHOLE_REQUESTS = 10
AT_MOST_MS = 10
PEER = "one row by its key"


@benchmark("position", f"a place in the queue while {WAITING:,} pieces of work wait", cluster=False)
def position(context: Context) -> Iterator[Figure]:
    services = context.services
    with own_database("position", database_url=services["database_url"], redis_url=services["redis_url"]):
        asked = _Asked()
        asked.check()
        rounds = [asked.round(number) for number in range(ROUNDS)]
        page = [asked.whole(asked.page_of_one, number) for number in range(ROUNDS)]
        queue = [asked.whole(asked.queue_page, number) for number in range(ROUNDS)]
    yield Figure("position_p50", "ms", PEER, [(_p50(ours), _p50(peer)) for ours, peer in rounds])
    yield Figure(
        "position_p99", "ms", PEER, [(_p99(ours), _p99(peer)) for ours, peer in rounds], Bar("ours", AT_MOST_MS)
    )
    yield Figure("position_of_one_workload_with_all_else", "ms", PEER, page)
    yield Figure("position_page_of_the_whole_queue", "ms", PEER, queue)


class _Asked:
    def __init__(self) -> None:
        from cluster.models import Cluster, MirrorWorkload
        from tests.load.long_queue import long_queue
        from workloads.core.policy import WORKLOADS_LIMIT

        self.cluster = Cluster.objects.create(name="main", notebooks_domain="notebooks.localhost")
        self.each = WORKLOADS_LIMIT
        self.namespaces = long_queue(self.cluster, teams=WAITING // self.each, each=self.each)
        self.uids = dict(MirrorWorkload.objects.values_list("job_uid", "namespace"))
        assert len(self.uids) == WAITING

    def check(self) -> None:
        """Every place of a team occurs once, and higher priorities come first."""
        from cluster.models import MirrorWorkload
        from workloads.status.observations.positions import queue_positions

        name = self.namespaces[0].name
        found = queue_positions(self.cluster.pk, name)
        assert sorted(found.values()) == list(range(self.each))
        rows = {row.job_uid: row for row in MirrorWorkload.objects.filter(namespace=name)}
        line = [rows[uid] for uid in sorted(found, key=found.__getitem__)]
        assert line == sorted(line, key=lambda row: (-row.record["priority"], row.created_at))

    def round(self, number: int) -> tuple[list[float], list[float]]:
        """Milliseconds for places of different teams, and for as many rows, in turns."""
        from workloads.status.observations.positions import queue_positions

        uids = list(self.uids)[number::ROUNDS]
        ours, peer = [], []
        for index in range(REQUESTS):
            uid = uids[index * len(uids) // REQUESTS]
            ours.append(_timed(lambda uid=uid: queue_positions(self.cluster.pk, self.uids[uid])[uid]))
            peer.append(_timed(lambda uid=uid: self.one_row(uid)))
        return ours, peer

    def whole(self, read: Callable[[int], Any], number: int) -> tuple[float, float]:
        """Returns medians."""
        uid = list(self.uids)[number]
        ours = [_timed(lambda index=index: read(number * WHOLE_REQUESTS + index)) for index in range(WHOLE_REQUESTS)]
        return _p50(ours), _p50([_timed(lambda: self.one_row(uid)) for _ in range(WHOLE_REQUESTS)])

    def one_row(self, uid: str) -> Any:
        from django.db import connection

        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT created_at FROM cluster_mirrorworkload WHERE cluster_id = %s AND job_uid = %s",
                [self.cluster.pk, uid],
            )
            return cursor.fetchone()

    def page_of_one(self, index: int) -> None:
        from workloads.core import workload_sql
        from workloads.models import Workload
        from workloads.status import queries

        namespace = self.namespaces[index % len(self.namespaces)]
        one = Workload.objects.filter(namespace=namespace, name=f"waits-{index}")
        [row] = queries.workload_rows(workload_sql.with_related(one))
        assert row.status.facts["position"] >= 1

    def queue_page(self, index: int) -> None:
        from desk.queue.queries import QueueFilter, read_queue

        assert len(read_queue(self.cluster, QueueFilter()).rows) > 0


def _timed(do: Callable[[], Any]) -> float:
    began = time.perf_counter()
    do()
    return (time.perf_counter() - began) * 1000


def _p50(values: list[float]) -> float:
    return statistics.median(values)


def _p99(values: list[float]) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[98]
