"""How a team used its quota: units in use by the hour, and waiting times and GPU-hours of its runs. None if nothing was
sampled.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import product
from typing import Any

from django.db import connection
from django.db.models import Max, Min, Q, QuerySet, Sum

from accounts.models import User
from catalog.models import GpuClass
from tenants.models import Tenant
from workloads.core.unit_sql import TOTAL_UNITS
from workloads.models import Run, Workload
from workloads.usage.models import UsageHour, UsageSample

# The reported period.
PERIOD = timedelta(days=30)
# A longer time from request to admission counts as waiting.
LONG_WAIT = timedelta(minutes=1)


@dataclass(frozen=True)
class Usage:
    """Units of one class. `peak` and `mean` None: nothing was sampled. `seen_share`: the sampled share of the period's
    minutes, 0 to 1; `seen_since`: the first sampled minute, to the hour.
    """

    peak: int | None
    mean: float | None
    seen_share: float
    seen_since: datetime | None


@dataclass(frozen=True)
class WaitStatistics:
    """For the runs requested in the period. `waited`: runs that were not admitted within a minute, including queued and
    stopped ones; `median_s` is of the admitted ones. None: there are none.
    """

    runs: int
    waited: int
    median_s: float | None

    @property
    def share(self) -> float | None:
        return self.waited / self.runs if self.runs else None


@dataclass(frozen=True)
class MemberHours:
    """GPU equivalents × hours of the runs that this user requested."""

    user_id: int
    name: str
    gpu_hours: float


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


def waits_of(
    tenant: Tenant, classes: Iterable[GpuClass], *, since: datetime, at: datetime
) -> dict[int, WaitStatistics]:
    """By class id, for runs as they were launched. One query."""
    return {pk: found for (_, pk), found in waits_of_teams([tenant.pk], classes, since=since, at=at).items()}


def waits_of_teams(
    tenant_ids: Collection[int], classes: Iterable[GpuClass], *, since: datetime, at: datetime
) -> dict[tuple[int, int], WaitStatistics]:
    """By team and class id, for the given ones; otherwise as `waits_of`. One query."""
    slugs = {one.slug: one.pk for one in classes}
    values: list[Any] = [list(tenant_ids), since, at, LONG_WAIT, list(slugs)]
    with connection.cursor() as cursor:
        cursor.execute(_WAITS, values)
        found = {(team, slugs[slug]): WaitStatistics(*of_runs) for team, slug, *of_runs in cursor.fetchall()}
    return {key: found.get(key, WaitStatistics(0, 0, None)) for key in product(tenant_ids, slugs.values())}


def hours_by_member(tenant: Tenant, *, since: datetime, at: datetime) -> list[MemberHours]:
    """For all classes, the most hours first; a queued run does not count. One query."""
    with connection.cursor() as cursor:
        cursor.execute(_HOURS, {"tenant": tenant.pk, "since": since, "at": at})
        return [MemberHours(pk, name, _round(hours)) for pk, name, hours in cursor.fetchall()]


def classes_used(tenant: Tenant, *, since: datetime, at: datetime) -> QuerySet[GpuClass]:
    """Returns by slug the classes for which the team has quota now, or that it used in the period or has
    workloads of.
    """
    holds = Q(grants__tenant=tenant, grants__period__contains=at)
    used = Q(pk__in=UsageSample.objects.filter(namespace__tenant=tenant, hour__gte=since).values("gpu_class"))
    works = Q(pk__in=Workload.objects.filter(tenant=tenant, deleted_at=None).values("gpu_class"))
    return GpuClass.objects.filter(holds | used | works).distinct().order_by("slug")


def _round(hours: Decimal) -> float:
    return round(float(hours), 2)


# Without a queue, a run is admitted when it starts.
_WAITS = f"""
WITH asked AS (
    SELECT workload.tenant_id, run.spec ->> 'gpu_class' AS slug, run.requested_at,
           coalesce(run.admitted_at, run.started_at) AS given_at, run.ended_at
      FROM {Run._meta.db_table} run JOIN {Workload._meta.db_table} workload ON workload.id = run.workload_id
     WHERE workload.tenant_id = ANY(%s) AND run.requested_at >= %s
)
SELECT tenant_id, slug, count(*),
       count(*) FILTER (WHERE coalesce(given_at, ended_at, %s) - requested_at > %s),
       percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM given_at - requested_at)::float8)
           FILTER (WHERE given_at IS NOT NULL)
  FROM asked WHERE slug = ANY(%s) GROUP BY tenant_id, slug"""

_HOURS = f"""
SELECT person.id, person.name, sum(spent.hours)
  FROM (
    SELECT run.requested_by_id, (run.spec ->> 'weight')::numeric * {TOTAL_UNITS}
           * extract(epoch FROM least(coalesce(run.ended_at, %(at)s), %(at)s) - greatest(run.started_at, %(since)s))
           / 3600 AS hours
      FROM {Run._meta.db_table} run JOIN {Workload._meta.db_table} workload ON workload.id = run.workload_id
     WHERE workload.tenant_id = %(tenant)s AND run.started_at < %(at)s
       AND (run.ended_at IS NULL OR run.ended_at > greatest(run.started_at, %(since)s))
  ) spent
  JOIN {User._meta.db_table} person ON person.id = spent.requested_by_id
 GROUP BY person.id, person.name ORDER BY 3 DESC, person.name, person.id"""
