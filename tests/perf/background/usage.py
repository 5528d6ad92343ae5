"""What it costs to read from Prometheus once a minute what the GPUs of 10,000 runs do, and how this grows from 1,000.

Two real Prometheus servers, with the five series of each run's GPU: 50,000 and 5,000. Django runs in this process, on
its own database. The peer of the growth is ten times the cost of 1,000 runs. What charts cost is in
tests/perf/activity.py.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from devcluster.cli.bench import Bar, Context, Figure, benchmark
from tests.perf.servers.database import own_database
from tests.support.processes.prometheus import Samples, prometheus_with

FEW, MANY = 1_000, 10_000
ROUNDS = 7
RUNS_PER_TEAM = 10
BEGIN = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
SCRAPE_S = 30
METRICS = {
    "DCGM_FI_DEV_GPU_UTIL": 70.0,
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": 0.7,
    "DCGM_FI_DEV_FB_USED": 30_720.0,
    "DCGM_FI_DEV_FB_FREE": 51_200.0,
    "DCGM_FI_DEV_POWER_USAGE": 310.0,
}
# A task of the worker has 20 s, and reads three periods at most.
SECONDS_MOST = 20 / 3
QUERIES_MOST = 20
PEER = f"ten times the cost of {FEW:,} runs"


@benchmark("usage", f"reading what the GPUs of {MANY:,} runs did in a minute from a real Prometheus", cluster=False)
def usage(context: Context) -> Iterator[Figure]:
    services = context.services
    stores = {name: services[name] for name in ("database_url", "redis_url")}
    costs: dict[int, list[float]] = {}
    asked: dict[int, int] = {}
    bytes_of: dict[int, float] = {}
    for number in (FEW, MANY):
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gpu-portal-prometheus-")))
            url = stack.enter_context(prometheus_with(_samples(number), folder))
            stack.enter_context(own_database("usage", **stores))
            ground = _Ground(number)
            costs[number] = [ground.read_minute(url, minute) for minute in range(ROUNDS)]
            asked[number] = ground.asked
            bytes_of[number] = ground.bytes_per_hour()
    growth = [(many, 10 * few) for few, many in zip(costs[FEW], costs[MANY], strict=True)]
    yield Figure("usage_minute", "s", PEER, growth, Bar("ratio", 1.2))
    most = [(one, SECONDS_MOST) for one in costs[MANY]]
    yield Figure("usage_minute_within_a_task", "s", "a third of a task's limit", most, Bar("ours", SECONDS_MOST))
    per_minute = asked[MANY] / ROUNDS
    queries = [(per_minute, float(QUERIES_MOST))] * ROUNDS
    yield Figure("usage_queries_a_minute", "queries", "the limit", queries, Bar("ours", QUERIES_MOST))
    size = (bytes_of[MANY] / 1024, 10 * bytes_of[FEW] / 1024)
    yield Figure("usage_rows_of_an_hour", "KiB", PEER, [size] * ROUNDS, Bar("ratio", 1.2))


def _samples(number: int) -> Iterator[Samples]:
    moments = [BEGIN.timestamp() + second for second in range(0, (ROUNDS + 1) * 60, SCRAPE_S)]
    for run in range(number):
        labels = {
            "UUID": f"GPU-{run:08d}", "gpu": str(run % 8), "Hostname": f"node-{run // 8}", "modelName": "NVIDIA H100",
            "exported_namespace": _namespace(run), "exported_pod": f"run{run}-1-ab1cd", "exported_container": "main",
            "namespace": "gpu-operator", "pod": f"nvidia-dcgm-exporter-{run // 8}", "container": "nvidia-dcgm-exporter",
        }  # fmt: skip
        for name, value in METRICS.items():
            yield Samples(name, labels, dict.fromkeys(moments, value))


def _namespace(run: int) -> str:
    return f"team-{run // RUNS_PER_TEAM}"


class _Ground:
    """Runs that hold one GPU each, in teams of ten."""

    def __init__(self, number: int) -> None:
        from cluster.models import Cluster

        self.number, self.asked = number, 0
        self.cluster = Cluster.objects.create(name="main", notebooks_domain="notebooks.localhost")
        _hold(self.cluster, number)

    def read_minute(self, url: str, minute: int) -> float:
        """Returns the seconds."""
        from portal.core.connections.prometheus_server import PrometheusServer
        from usage.telemetry import collection
        from usage.telemetry.models import RunHour

        server = PrometheusServer(url)
        ask = collection.asker(server)

        def counted(*given: Any) -> Any:
            self.asked += 1
            return ask(*given)

        began = time.perf_counter()
        collection.read_cluster(self.cluster, counted, at=BEGIN + (minute + 1) * MINUTE + collection.LAG)
        cost = time.perf_counter() - began
        seen = RunHour.objects.filter(seen_minutes=(1 << (minute + 1)) - 1, activity_last=70).count()
        assert seen == self.number, f"{seen} of {self.number} runs have minute {minute}"
        return cost

    def bytes_per_hour(self) -> float:
        """Of the table with its indexes after VACUUM FULL: what stays."""
        from django.db import connection

        with connection.cursor() as cursor:
            cursor.execute("VACUUM (FULL, ANALYZE) usage_runhour")
            cursor.execute("SELECT pg_total_relation_size('usage_runhour')")
            return float(cursor.fetchone()[0])


def _hold(cluster: Any, number: int) -> None:
    from django.db import connection

    from tenants.models import Namespace, Tenant
    from tests.support.rows import make
    from workloads.models import AllocationInterval, Run, Workload

    person, gpu_class = make.user("Alice"), make.gpu_class(cluster)
    slugs = [f"team-{place}" for place in range(number // RUNS_PER_TEAM)]
    teams = Tenant.objects.bulk_create(Tenant(slug=slug, name=slug) for slug in slugs)
    namespaces = Namespace.objects.bulk_create(
        Namespace(tenant=team, cluster=cluster, name=team.slug, due_at=None) for team in teams
    )
    workloads = Workload.objects.bulk_create([
        Workload(
            tenant=teams[run // RUNS_PER_TEAM], namespace=namespaces[run // RUNS_PER_TEAM], name=f"run{run}",
            kind="job", origin=f"n{run}", gpu_class=gpu_class, units=1, image="image", created_by=person, due_at=None,
        )
        for run in range(number)
    ], batch_size=1000)  # fmt: skip
    spec = {"gpu_class": gpu_class.slug, "units": 1, "kind": "job"}
    runs = Run.objects.bulk_create(
        [Run(workload=one, number=1, spec=spec, requested_by=person) for one in workloads], batch_size=1000
    )
    AllocationInterval.objects.bulk_create([
        AllocationInterval(
            run=run, namespace=run.workload.namespace, gpu_class=gpu_class, units=1, weight=1, price_per_unit_hour=3,
            priority="batch", source=AllocationInterval.Source.START, starts_at=BEGIN - timedelta(hours=22),
        )
        for run in runs
    ], batch_size=1000)  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
