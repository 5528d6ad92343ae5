"""Reads what was measured of a run, and of a team and of classes by day. Pages never ask Prometheus."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.utils import timezone

from accounts.core.actor import Actor
from catalog.models import GpuClass
from cluster.models import Cluster
from cluster.reads import queries as read_queries
from portal.core.errors import get_or_refuse
from tenants.class_access.queries import visible_classes
from tenants.models import Namespace
from usage.activity.class_sql import CLASS_DAYS
from usage.activity.types import (
    NO_SAMPLE_OF_CLASS,
    ClassActivity,
    ClassDay,
    DayOfClass,
    Hour,
    Now,
    RunActivity,
    Source,
    never_measured_because,
    not_measured_because,
    unread_because,
)
from usage.gpu_hours.interval_sql import PERIOD_HELD
from usage.right_size.queries import size_advice
from usage.samples.capacity import BRIDGED
from usage.telemetry.models import RunHour, TelemetrySource
from usage.telemetry.types import MINUTE, bit_of, hour_of
from workloads.core import queries as core_queries
from workloads.models import AllocationInterval, Run, Workload

HOURS_SHOWN = 7 * 24
DAYS_SHOWN = 30
# Then a minute that was read is no longer the last one.
CURRENT_FOR = timedelta(minutes=2)


def run_activity(run: Run, gpu_class: GpuClass, *, at: datetime | None = None) -> RunActivity:
    """Of the last week in which it held units. Three queries."""
    at = at or timezone.now()
    source = _source(gpu_class.cluster_id)
    rows = list(RunHour.objects.filter(run=run).order_by("-hour")[:HOURS_SHOWN])
    held = AllocationInterval.objects.filter(run=run, ends_at=None).values_list("starts_at", flat=True).first()
    last = rows[0] if rows else None
    now = _now(last, source, at) if held is not None else None
    reason = "" if now is not None else _reason(source, gpu_class, held, at)
    totals = [one.memory_total_mib for one in rows if one.memory_samples]
    return RunActivity(
        run_number=run.number,
        measure=last.measure if last else "",
        now=now,
        reason=reason,
        read_until=source.read_until if source else None,
        is_partial=source is not None and source.is_partial,
        hours=tuple(map(_hour, reversed(rows))),
        memory_total_mib=max(totals, default=None),
        memory_share_max=max((one.memory_share_max for one in rows if one.memory_samples), default=None),
    )


def workload_activity(by: Actor, workload: Workload) -> RunActivity | None:
    """Of its last run, and the size that its use in two weeks suggests; None: it never ran."""
    run = core_queries.last_run(workload)
    if run is None:
        return None
    now = timezone.now()
    return replace(run_activity(run, workload.gpu_class, at=now), size_advice=size_advice(by, workload, at=now))


def _source(cluster_id: int) -> Source | None:
    found = TelemetrySource.objects.filter(cluster_id=cluster_id).first()
    return None if found is None else Source(found.read_until, found.problem, found.problem_since, found.is_partial)


def _now(last: RunHour | None, source: Source | None, at: datetime) -> Now | None:
    if last is None or source is None or source.read_until is None or at - source.read_until > CURRENT_FOR:
        return None
    minute = source.read_until - MINUTE
    if last.hour != hour_of(minute) or not last.seen_minutes & bit_of(minute):
        return None
    return Now(last.activity_last, last.memory_last_mib, last.power_last_w)


def _reason(source: Source | None, gpu_class: GpuClass, held: datetime | None, at: datetime) -> str:
    return not_measured_because(_as_of(source, at), **_facts(gpu_class), held_since=held, now=at)


def _as_of(source: Source | None, at: datetime) -> Source | None:
    if source and not source.problem and source.read_until and at - source.read_until > CURRENT_FOR:
        return replace(source, problem="The worker has not read it.", problem_since=source.read_until)
    return source


def _facts(gpu_class: GpuClass) -> dict[str, Any]:
    return {
        "vendor": gpu_class.vendor,
        "has_gpu": gpu_class.interface not in (GpuClass.Interface.NONE, GpuClass.Interface.STORAGE),
        "is_shared": gpu_class.sharing != GpuClass.Sharing.NONE,
    }


def _hour(row: RunHour) -> Hour:
    minutes = row.seen_minutes.bit_count()
    return Hour(
        hour=row.hour,
        minutes=minutes,
        busy_minutes=row.busy_minutes.bit_count(),
        activity=row.activity_sum / minutes,
        activity_max=row.activity_max,
        memory_mib=row.memory_sum_mib / row.memory_samples if row.memory_samples else None,
        power_w=row.power_sum_w / row.power_samples if row.power_samples else None,
    )


def team_activity(namespace: Namespace, *, at: datetime | None = None) -> Sequence[DayOfClass]:
    """By day and class, of the last 30 days including today, for what the team held. One query."""
    with connection.cursor() as cursor:
        cursor.execute(_DAYS, {"namespace": namespace.pk, **_days(at or timezone.now())})
        return [DayOfClass(*row) for row in cursor.fetchall()]


def _days(at: datetime) -> dict[str, Any]:
    """In local time: a day can have 23 or 25 hours."""
    midnight = timezone.localtime(at).replace(hour=0, minute=0, second=0, microsecond=0)
    days = [midnight - timedelta(days=back) for back in range(DAYS_SHOWN - 1, -1, -1)]
    return {"starts": days, "ends": [*days[1:], at], "since": days[0], "at": at}


def team_classes(namespace: Namespace, *, at: datetime | None = None) -> list[ClassActivity]:
    """The same by class, the one with the most unit-hours first. Three queries."""
    at = at or timezone.now()
    days: Mapping[str, list[DayOfClass]] = defaultdict(list)
    for day in team_activity(namespace, at=at):
        days[day.gpu_class].append(day)
    classes = GpuClass.objects.filter(cluster=namespace.cluster_id, slug__in=days)
    source = _as_of(_source(namespace.cluster_id), at)
    found = [_of_class(one, tuple(days[one.slug]), source) for one in classes]
    return sorted(found, key=lambda one: (-one.held, one.slug))


def class_activity(by: Actor, slug: str) -> ClassActivity:
    """Of all teams. Raises Refused (404) if `by` may not see the class. Four queries."""
    cluster = read_queries.current_cluster()
    one = get_or_refuse(visible_classes(by, cluster), slug=slug)
    [found] = _of_classes(cluster.pk, [one])
    return found


def cluster_activity(cluster: Cluster) -> list[ClassActivity]:
    """Of all classes of which units were held or recorded in these days, by slug. Three queries."""
    classes = GpuClass.objects.filter(cluster=cluster).exclude(interface=GpuClass.Interface.STORAGE).order_by("slug")
    return [one for one in _of_classes(cluster.pk, classes) if one.days]


def _of_classes(cluster_id: int, classes: Iterable[GpuClass], *, at: datetime | None = None) -> list[ClassActivity]:
    at, known = at or timezone.now(), list(classes)
    source = _as_of(_source(cluster_id), at)
    values = {"classes": [one.pk for one in known], "recent": at - BRIDGED, **_days(at)}
    days: dict[str, list[ClassDay]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(CLASS_DAYS, values)
        for slug, *figures in cursor.fetchall():
            days[slug].append(ClassDay(*figures))
    return [_of_class(one, tuple(days[one.slug]), source) for one in known]


def _of_class(one: GpuClass, days: tuple[ClassDay | DayOfClass, ...], source: Source | None) -> ClassActivity:
    never = never_measured_because(**_facts(one))
    reason = never or unread_because(source)
    if not reason and any(day.held for day in days) and not any(day.measured for day in days):
        reason = NO_SAMPLE_OF_CLASS
    return ClassActivity(one.slug, one.name, days, reason, source.read_until if source and not never else None)


# What the team held and what was measured of it are read first, by their indexes. Otherwise the planner may look for
# all intervals of a day. Hours are added up by run and day before anything is joined: 30 days of ten runs have 7,200 of
# them. Units of a run's hour are those of its interval; they are frozen with the run.
_DAYS = f"""
WITH day AS (
    SELECT *
      FROM unnest(%(starts)s::timestamptz[], %(ends)s::timestamptz[]) WITH ORDINALITY day (since, until, number)),
held AS MATERIALIZED (
    SELECT * FROM {AllocationInterval._meta.db_table} held
     WHERE held.namespace_id = %(namespace)s AND {PERIOD_HELD} && tstzrange(%(since)s, %(at)s)),
used AS (
    SELECT day.number, day.since AS day, held.gpu_class_id,
           sum(held.units * extract(epoch FROM least(coalesce(held.ends_at, %(at)s), day.until)
                                     - greatest(held.starts_at, day.since))) / 3600 AS unit_hours
      FROM held JOIN day ON {PERIOD_HELD} && tstzrange(day.since, day.until)
     GROUP BY 1, 2, 3),
seen_by_run AS (
    SELECT hour.run_id, hour.gpu_class_id, width_bucket(hour.hour, %(starts)s::timestamptz[]) AS number,
           sum(bit_count(hour.seen_minutes::bit(64))) AS minutes, sum(hour.activity_sum) AS activity
      FROM {RunHour._meta.db_table} hour
     WHERE hour.namespace_id = %(namespace)s AND hour.hour >= %(since)s AND hour.hour < %(at)s
       AND hour.measure <> '{RunHour.Measure.SHARED}'
     GROUP BY 1, 2, 3),
seen AS MATERIALIZED (
    SELECT number, gpu_class_id, sum(run.units * minutes) / 60 AS measured, sum(run.units * activity) / 6000 AS busy
      FROM seen_by_run
     CROSS JOIN LATERAL (
           SELECT units FROM {AllocationInterval._meta.db_table} WHERE run_id = seen_by_run.run_id LIMIT 1) run
     GROUP BY 1, 2)
SELECT used.day, class.slug, class.name, used.unit_hours, coalesce(seen.measured, 0)::float, coalesce(seen.busy, 0)
  FROM used
  JOIN {GpuClass._meta.db_table} class ON class.id = used.gpu_class_id
  LEFT JOIN seen ON seen.number = used.number AND seen.gpu_class_id = used.gpu_class_id
 ORDER BY class.slug, used.day"""
