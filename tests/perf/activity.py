"""What charts of 30 days cost: a team's home with and without measured days, the team's fragment with 10,000 teams
compared with 100, and the fragments of a class and of the cluster.

Django runs in this process, with three databases: 100 teams without and with measured hours, and 10,000 with. The team
that is looked at holds ten GPUs in all of the 30 days; each other team held one GPU for a day, on one of these days.
The same request goes to all in turn. Without a bar: fragments of a class and of the cluster, whose intervals grow with
the number of teams.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta
from typing import Any

from devcluster.cli.bench import Bar, Context, Figure, benchmark
from tests.perf.pages import FEW, MANY, Side
from tests.perf.servers.database import own_database

ROUNDS = 7
REQUESTS = 8
DAYS, RUNS = 30, 10
BARE = 0
HOME, TEAM, CLASS, CLUSTER = "/teams/team-0", "/teams/team-0/activity", "/catalog/class-0/activity", "/cluster/activity"


@benchmark("activity", f"charts of {DAYS} days with {MANY:,} teams over those with {FEW}", cluster=False)
def activity(context: Context) -> Iterator[Figure]:
    services = context.services
    sides: dict[int, _Measured] = {}
    with ExitStack() as databases:
        for key, teams in ((BARE, FEW), (FEW, FEW), (MANY, MANY)):
            urls = {name: services[name] for name in ("database_url", "redis_url")}
            databases.enter_context(own_database(f"activity_{key}", **urls))
            sides[key] = _Measured(teams, is_measured=key != BARE)
        counts = [sides[key].queries(TEAM, "alice") for key in (FEW, MANY)]
        assert counts[0] == counts[1], f"{TEAM} asks the database {counts} times"
        rounds = [_round(sides) for _ in range(ROUNDS)]
    home, team, of_class, cluster = zip(*rounds, strict=True)
    yield Figure("activity_home_p50", "ms", "a team that was not measured", list(home), Bar("ratio", 1.2))
    yield Figure("activity_team_p50", "ms", f"{FEW} teams", list(team), Bar("ratio", 1.2))
    yield Figure("activity_class_p50", "ms", f"{FEW} teams", list(of_class))
    yield Figure("activity_cluster_p50", "ms", f"{FEW} teams", list(cluster))


def _round(sides: dict[int, _Measured]) -> list[tuple[float, float]]:
    """Pairs of medians: the home of a team that was measured and of one that was not, then many and few teams."""
    asked = [(HOME, "alice", FEW, BARE), *((path, "olga", MANY, FEW) for path in (TEAM, CLASS, CLUSTER))]
    found = []
    for path, who, ours, peer in asked:
        times: dict[int, list[float]] = {ours: [], peer: []}
        for _ in range(REQUESTS):
            for key, taken in times.items():
                taken.append(sides[key].get(path, who))
        found.append((statistics.median(times[ours]), statistics.median(times[peer])))
    return found


class _Measured(Side):
    """`is_measured`: runs have hours. They hold their units in any case."""

    def __init__(self, teams: int, *, is_measured: bool) -> None:
        from django.test import Client
        from django.utils import timezone

        from accounts.models import Role
        from cluster.models import Cluster
        from tests.support.rows import make

        super().__init__(teams)
        cluster = Cluster.objects.get()
        hour = timezone.now().replace(minute=0, second=0, microsecond=0)
        _hold(cluster, hour - timedelta(days=DAYS))
        if is_measured:
            _measure(cluster, hour)
        with self.connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")
        self.clients["olga"] = Client(headers={"Host": "localhost"})
        self.clients["olga"].force_login(make.user("Olga", roles=[Role.OPERATOR]))


def _hold(cluster: Any, first: datetime) -> None:
    """Team 0 holds RUNS GPUs of the first class all the time; each other team holds one GPU for a day."""
    from accounts.models import User
    from catalog.models import GpuClass
    from tenants.models import Namespace
    from usage.samples.models import CapacityInterval
    from usage.telemetry.models import TelemetrySource
    from workloads.launch.spec import frozen_spec
    from workloads.models import AllocationInterval, Run, Workload

    classes, person = list(GpuClass.objects.order_by("slug")), User.objects.first()
    namespaces = list(Namespace.objects.order_by("pk"))
    held: list[tuple[Any, Any, datetime, datetime | None]] = [
        (namespaces[0], classes[0], first - timedelta(days=1), None) for _ in range(RUNS)
    ]
    for number, namespace in enumerate(namespaces[1:]):
        since = first + timedelta(hours=number % ((DAYS - 1) * 24))
        held.append((namespace, classes[number % len(classes)], since, since + timedelta(days=1)))
    workloads = Workload.objects.bulk_create([
        Workload(
            tenant_id=namespace.tenant_id, namespace=namespace, name=f"run{number}", kind="job", origin=f"n{number}",
            gpu_class=one, units=1, image="image", created_by=person, due_at=None, deleted_at=until,
        )
        for number, (namespace, one, _, until) in enumerate(held)
    ], batch_size=1000)  # fmt: skip
    spec = frozen_spec(workloads[0], 1).to_json()
    runs = Run.objects.bulk_create([
        Run(
            workload=workload, number=1, spec=spec | {"gpu_class": one.slug}, requested_by=person,
            requested_at=since, started_at=since, ended_at=until, outcome="succeeded" if until else "",
        )
        for workload, (_, one, since, until) in zip(workloads, held, strict=True)
    ], batch_size=1000)  # fmt: skip
    AllocationInterval.objects.bulk_create([
        AllocationInterval(
            run=run, namespace=namespace, gpu_class=one, units=1, weight=1, price_per_unit_hour=3, priority="batch",
            source=AllocationInterval.Source.START, starts_at=since, ends_at=until,
        )
        for run, (namespace, one, since, until) in zip(runs, held, strict=True)
    ], batch_size=1000)  # fmt: skip
    now = first + timedelta(days=DAYS)
    for one in classes:
        CapacityInterval.objects.create(gpu_class=one, units=16, starts_at=first, ends_at=now)
    TelemetrySource.objects.create(cluster=cluster, read_until=now)


def _measure(cluster: Any, until: datetime) -> None:
    """All minutes of all hours, hour by hour, as they are written."""
    from django.db import connection

    from usage.telemetry.class_hours import sum_up

    hours = [until - timedelta(hours=back) for back in range(DAYS * 24, 0, -1)]
    with connection.cursor() as cursor:
        for hour in hours:
            cursor.execute(_HOUR, {"hour": hour})
    sum_up(cluster.pk, hours)


_HOUR = """
INSERT INTO usage_runhour (run_id, hour, namespace_id, gpu_class_id, measure, seen_minutes, busy_minutes, activity_sum,
       activity_max, activity_last, busy_devices_max, memory_samples, memory_sum_mib, memory_max_mib, memory_total_mib,
       memory_share_max, power_samples, power_sum_w)
SELECT run_id, %(hour)s, namespace_id, gpu_class_id, 'utilisation', (1::bigint << 60) - 1, (1::bigint << 60) - 1, 2400,
       90, 40, 1, 60, 60 * 30720, 40960, 81920, 50, 60, 60 * 310
  FROM workloads_allocationinterval
 WHERE starts_at <= %(hour)s AND (ends_at IS NULL OR ends_at >= %(hour)s + interval '1 hour')
 ORDER BY run_id"""
