"""One scrape of a process's metrics with a million ended runs, over one with a thousand. 5,000 more live in both."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from devcluster.cli.bench import Bar, Context, Figure, benchmark
from tests.perf.servers.database import own_database

FEW, MANY = 1_000, 1_000_000
TEAMS, LIVE, OF_ONE_WORKLOAD = 100, 5_000, 20
DAYS = 400
ROUNDS, SCRAPES = 7, 5
MOST_MS, GROWTH = 50.0, 1.2


@benchmark("scrape", f"a scrape of metrics with {MANY:,} runs over one with {FEW:,}", cluster=False)
def scrape(context: Context) -> Iterator[Figure]:
    sides = {}
    with ExitStack() as databases:
        for runs in (FEW, MANY):
            urls = {key: context.services[key] for key in ("database_url", "redis_url")}
            databases.enter_context(own_database(f"scrape_{runs}", **urls))
            sides[runs] = _Side(runs)
        rounds = [_round(sides) for _ in range(ROUNDS)]
    yield Figure("scrape_p50", "ms", f"{FEW:,} runs", rounds, Bar("ours", MOST_MS))
    yield Figure("scrape_growth", "ms", f"{FEW:,} runs", rounds, Bar("ratio", GROWTH))


def _round(sides: dict[int, _Side]) -> tuple[float, float]:
    """Returns medians for (many, few) runs, from scrapes in turn."""
    took: dict[int, list[float]] = {MANY: [], FEW: []}
    for _ in range(SCRAPES):
        for runs, found in took.items():
            found.append(sides[runs].scrape())
    return statistics.median(took[MANY]), statistics.median(took[FEW])


class _Side:
    """A database with its connection."""

    def __init__(self, runs: int) -> None:
        from django.db import connections

        from cluster.models import Cluster
        from tests.load.many_teams import many_teams

        self.connection = connections["default"]
        cluster = Cluster.objects.create(name="main", notebooks_domain="notebooks.localhost")
        many_teams(cluster, teams=TEAMS, waiting=0)
        _fill(cluster, runs)
        with self.connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")

    def scrape(self) -> float:
        """Returns milliseconds."""
        from django.db import connections
        from django.db.models.functions import Now

        from cluster.models import MirrorEpoch, MirrorKind
        from portal.ops.metrics import exposition

        connections["default"] = self.connection
        # The watcher's heartbeat: otherwise the data does not count as current, and less is read.
        MirrorEpoch.objects.update(beat_at=Now())
        MirrorKind.objects.update(heard_at=Now())
        began = time.perf_counter()
        text = exposition()
        took = (time.perf_counter() - began) * 1000
        assert b"portal_database_up 1.0" in text
        assert b'portal_queue_wait_seconds{class="class-0",quantile="0.5"}' in text
        assert b'portal_topology_rejections_total{class="class-0"} 0.0' not in text
        return took


def _fill(cluster: Any, ended: int) -> None:
    """One ended run in 500 was refused by the topology manager. Each live one has its Job, as sent and as seen."""
    from django.utils import timezone

    from catalog.models import GpuClass
    from cluster.models import AppliedObject, MirrorJob
    from tenants.models import Namespace
    from workloads.launch.spec import frozen_spec
    from workloads.models import Run, Workload

    gpu_class = GpuClass.objects.get(slug="class-0")
    namespace, now = Namespace.objects.order_by("pk")[0], timezone.now()
    person = namespace.tenant.memberships.get().user
    one = Workload.objects.create(
        tenant=namespace.tenant, namespace=namespace, name="old", origin="old", kind="job", units=1, image="image",
        gpu_class=gpu_class, created_by=person, due_at=None, observed_generation=1, deleted_at=now,
    )  # fmt: skip
    run = Run.objects.create(
        workload=one, number=1, requested_by=person, spec=frozen_spec(one, 1).to_json(), ended_at=now,
        requested_at=now, admitted_at=now, started_at=now, ready_at=now, outcome="succeeded", reason="Completed",
    )  # fmt: skip
    workloads = ended // OF_ONE_WORKLOAD
    _copy(Workload, one.pk, workloads, name="'old-' || n", origin="'old-' || n")
    at = f"now() - n * (interval '{DAYS} days' / {ended})"
    _copy(
        Run, run.pk, ended, workload_id=f"{one.pk} + 1 + (n - 1) % {workloads}", number=f"1 + (n - 1) / {workloads}",
        reason="CASE WHEN n % 500 = 0 THEN 'topology_refused' ELSE 'Completed' END",
        **dict.fromkeys(["requested_at", "admitted_at", "started_at", "ready_at", "ended_at"], at),
    )  # fmt: skip
    live = one.pk + workloads
    _copy(Workload, one.pk, LIVE, name="'live-' || n", origin="'live-' || n", deleted_at="NULL")
    _copy(Run, run.pk, LIVE, workload_id=f"{live} + n", ended_at="NULL", outcome="''", reason="''",
          admitted_at="now() - n * interval '1 minute'")  # fmt: skip
    label = f"'workloads.workload.' || {live} + n"
    names = {"owner": label, "name": "'live-' || n || '-1'", "uid": "md5('live' || n)"}
    place = {"cluster_id": cluster.pk, "namespace": namespace.name, "owner": "o", "name": "n", "uid": "u"}
    sent = AppliedObject.objects.create(**place, kind="Job", result="applied")
    shown = MirrorJob.objects.create(**place, created_at=now, resource_version=1, record={})
    for row in (sent, shown):
        _copy(type(row), row.pk, LIVE, **names)
        row.delete()


def _copy(model: Any, pk: int, number: int, /, **changed: str) -> None:
    """`changed`: SQL by column; `n` is 1 for the first copy."""
    from django.db import connection

    names = [field.column for field in model._meta.concrete_fields if not field.primary_key]
    values = [changed.get(name, f'it."{name}"') for name in names]
    quoted = ", ".join(f'"{name}"' for name in names)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {model._meta.db_table} ({quoted}) SELECT {', '.join(values)}"
            f" FROM {model._meta.db_table} it, generate_series(1, {number}) n WHERE it.id = {pk} ORDER BY n"
        )
