"""How many units of each class a team used, by the hour. None if nothing was sampled."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import product

from django.db.models import Max, Min, Q, QuerySet, Sum

from catalog.models import GpuClass
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
