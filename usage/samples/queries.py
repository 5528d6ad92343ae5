"""How many units of each class a team used, by the hour. None if nothing was sampled."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import product

from django.db import connection
from django.db.models import Max, Min, Q, QuerySet, Sum

from catalog.models import GpuClass
from cluster.models import Cluster
from tenants.models import Tenant
from usage.samples.models import UsageHour, UsageSample
from workloads.models import Workload

# The reported period.
PERIOD = timedelta(days=30)


@dataclass(frozen=True)
class Usage:
    """Units of one class. `peak` and `mean` None: nothing was sampled. `seen_share`: the sampled share of the period's
    minutes, 0 to 1; `seen_since`: the first sampled minute, to the hour.
    """

    peak: int | None
    mean: float | None
    seen_share: float
    seen_since: datetime | None


def usage_of(tenant: Tenant, classes: Collection[GpuClass], *, since: datetime, at: datetime) -> dict[int, Usage]:
    """By class id, from the hour of `since` until `at`. Two queries."""
    return {pk: found for (_, pk), found in usage_of_teams([tenant.pk], classes, since=since, at=at).items()}


def usage_of_teams(
    tenant_ids: Collection[int], classes: Collection[GpuClass], *, since: datetime, at: datetime
) -> dict[tuple[int, int], Usage]:
    """By team and class id, for the given ones; otherwise as `usage_of`. Two queries. Storage is not sampled."""
    start = since.replace(minute=0, second=0, microsecond=0)
    samples = UsageSample.objects.filter(namespace__tenant__in=tenant_ids, gpu_class__in=classes, hour__gte=start)
    used = {
        (row["namespace__tenant_id"], row["gpu_class_id"]): row
        for row in samples.values("namespace__tenant_id", "gpu_class_id").annotate(
            peak=Max("units_max"), total=Sum("units_sum")
        )
    }
    hours = UsageHour.objects.filter(cluster__in={one.cluster_id for one in classes}, hour__gte=start)
    seen = {
        row["cluster_id"]: row for row in hours.values("cluster_id").annotate(total=Sum("minutes"), first=Min("hour"))
    }
    period = (at - start) / timedelta(minutes=1)
    found = {}
    for tenant_id, one in product(tenant_ids, classes):
        key = (tenant_id, one.pk)
        minutes = seen.get(one.cluster_id)
        if minutes is None or one.is_storage:
            found[key] = Usage(None, None, 0.0, None)
            continue
        theirs = used.get(key, {"peak": 0, "total": 0})
        share = min(1.0, minutes["total"] / period)
        found[key] = Usage(theirs["peak"], theirs["total"] / minutes["total"], share, minutes["first"])
    return found


def classes_used(tenant: Tenant, *, since: datetime, at: datetime) -> QuerySet[GpuClass]:
    """Returns by slug the classes for which the team has quota now, or that it used in the period or has
    workloads of.
    """
    holds = Q(grants__tenant=tenant, grants__period__contains=at)
    used = Q(pk__in=UsageSample.objects.filter(namespace__tenant=tenant, hour__gte=since).values("gpu_class"))
    works = Q(pk__in=Workload.objects.filter(tenant=tenant, deleted_at=None).values("gpu_class"))
    return GpuClass.objects.filter(holds | used | works).distinct().order_by("slug")


def busy_units(cluster: Cluster, class_ids: Collection[int], *, since: datetime) -> dict[int, int] | None:
    """By class id, the units that all teams together held at most in 95 of 100 hours; None if nothing was sampled. Two
    queries.

    The most of each team in an hour is added up: that is what the hour needs if no team waits, never less. A sum of
    unit-hours would be a mean, and half of the hours need more. Hours before the first use of a class in the period do
    not count, so that a new class is not taken for an idle one; hours without use after it are 0.
    """
    start = since.replace(minute=0, second=0, microsecond=0)
    if not UsageHour.objects.filter(cluster=cluster, hour__gte=start).exists():
        return None
    with connection.cursor() as cursor:
        cursor.execute(_BUSY, {"cluster": cluster.pk, "classes": list(class_ids), "since": start})
        return dict(cursor.fetchall())


_BUSY = f"""
WITH held AS (
    SELECT gpu_class_id, hour, sum(units_max)::int AS units FROM {UsageSample._meta.db_table}
     WHERE gpu_class_id = ANY(%(classes)s::bigint[]) AND hour >= %(since)s GROUP BY gpu_class_id, hour),
first AS (SELECT gpu_class_id, min(hour) AS hour FROM held GROUP BY gpu_class_id)
SELECT first.gpu_class_id, percentile_disc(0.95) WITHIN GROUP (ORDER BY coalesce(held.units, 0))
  FROM first
  JOIN {UsageHour._meta.db_table} seen ON seen.cluster_id = %(cluster)s AND seen.hour >= first.hour
  LEFT JOIN held ON held.gpu_class_id = first.gpu_class_id AND held.hour = seen.hour
 GROUP BY first.gpu_class_id"""
