"""How long pages take while a watcher lists 50,000 pods and 50,000 Jobs again, beside the same pages at rest.

A new watcher lists the cluster that an earlier one has mirrored, as after a restart of the watcher or of the API
server. The pods belong to runs of 100 teams, and members of these teams read home and the page of a workload, ten
requests a second, from the start of the watcher until all is listed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from devcluster.cli.bench import Bar, Context, Figure, benchmark
from tests.perf.servers.database import own_database
from tests.perf.servers.redis import own_redis
from tests.perf.servers.served import served_by_gunicorn
from tests.perf.servers.watcher import COMES_WITHIN_S, watcher
from tests.perf.support import pace
from tests.perf.support.cluster.crowd import signed_in
from tests.perf.support.cluster.quiet_runs import RUNS, make_rows, runs_in_cluster, until_synced
from tests.perf.support.processes import stopped

ROUNDS = 6
A_SECOND, AT_ONCE, CONNECTIONS = 10.0, 20, 16
AT_REST = 100
PORTAL = ("beat", "worker", "watcher", "web", "doors")
PAGE_P99_MS = 500.0


@benchmark("relist", f"pages while a watcher lists {RUNS:,} pods again, over the same pages at rest")
def relist(context: Context) -> Iterator[Figure]:
    services = context.services
    kubeconfig, state = services["kubeconfigs"]["watcher"], Path(services["state_dir"])
    with (
        # They would use the same PostgreSQL and follow the same objects.
        stopped([context.demo["process_ids"][name] for name in PORTAL]),
        own_redis() as redis_url,
        own_database("relist", database_url=services["database_url"], redis_url=redis_url),
        runs_in_cluster(context.admin, state) as job_uid,
    ):
        os.environ["REDIS_URL"] = redis_url
        cluster = make_rows(job_uid)
        with watcher(kubeconfig):
            until_synced(cluster.pk)
        with served_by_gunicorn() as web:
            pages = _Pages(web.port)
            rounds = [_round(pages, cluster.pk, kubeconfig) for _ in range(ROUNDS)]
    p99 = [(pace.p99(during), pace.p99(rest)) for during, rest, _ in rounds]
    yield Figure("relist_page_p99", "ms", "at rest", p99, Bar("ours", PAGE_P99_MS))
    yield Figure("relist_until_listed", "s", "none", [(took_s, 0.0) for _, _, took_s in rounds])


class _Pages:
    """Pages of different teams, one after the other."""

    def __init__(self, port: int) -> None:
        from tests.support.rows import make
        from workloads.models import Workload

        self._pace = pace.Pace(port, CONNECTIONS)
        self._asked = []
        self._number = 0
        for one in Workload.objects.order_by("tenant_id", "pk").distinct("tenant_id").select_related("tenant"):
            # One person would soon be told to wait.
            reader = make.user(f"reader-of-{one.tenant.slug}")
            make.member(one.tenant, reader)
            headers = {"Cookie": signed_in(reader), "Host": "localhost"}
            home = f"/teams/{one.tenant.slug}"
            self._asked += [pace.Asked(home, headers), pace.Asked(f"{home}/workloads/{one.name}", headers)]

    def read(self, requests: int) -> list[float]:
        """Milliseconds of each."""
        begin, self._number = self._number, self._number + requests
        return [*self._pace.run(lambda index: self._asked[(begin + index) % len(self._asked)], A_SECOND, requests)]


def _round(pages: _Pages, cluster_id: int, kubeconfig: str) -> tuple[list[float], list[float], float]:
    """Milliseconds of each page while the cluster is listed and at rest, and the seconds until it was listed."""
    from django.utils import timezone

    rest, during = pages.read(AT_REST), list[float]()
    before, began = timezone.now(), time.monotonic()
    with watcher(kubeconfig):
        while not _is_listed(cluster_id, before):
            assert time.monotonic() - began < COMES_WITHIN_S, "The list of a new watcher did not come"
            during += pages.read(AT_ONCE)
        return during, rest, time.monotonic() - began


def _is_listed(cluster_id: int, since: object) -> bool:
    from cluster.models import MirrorKind

    kinds = MirrorKind.objects.filter(cluster_id=cluster_id)
    return kinds.exists() and not kinds.exclude(listed_at__gt=since).exists()
