"""Reads what was measured of a run, and of a team by day. Pages never ask Prometheus."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.utils import timezone

from accounts.core.actor import Actor
from catalog.models import GpuClass
from tenants.models import Namespace
from usage.activity.types import DayOfClass, Hour, Now, RunActivity, Source, not_measured_because
from usage.gpu_hours.interval_sql import PERIOD_HELD
from usage.right_size.queries import size_advice
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
    if source and not source.problem and source.read_until and at - source.read_until > CURRENT_FOR:
        source = Source(source.read_until, "The worker has not read it.", source.read_until, source.is_partial)
    return not_measured_because(
        source,
        vendor=gpu_class.vendor,
        has_gpu=gpu_class.interface not in (GpuClass.Interface.NONE, GpuClass.Interface.STORAGE),
        is_shared=gpu_class.sharing != GpuClass.Sharing.NONE,
        held_since=held,
        now=at,
    )


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
    at = at or timezone.now()
    midnight = timezone.localtime(at).replace(hour=0, minute=0, second=0, microsecond=0)
    # In local time: a day can have 23 or 25 hours.
    days = [midnight - timedelta(days=back) for back in range(DAYS_SHOWN - 1, -1, -1)]
    values: dict[str, Any] = {
        "namespace": namespace.pk,
        "starts": days,
        "ends": [*days[1:], at],
        "since": days[0],
        "at": at,
    }
    with connection.cursor() as cursor:
        cursor.execute(_DAYS, values)
        return [DayOfClass(*row) for row in cursor.fetchall()]


# What the team held and what was measured of it are read first, by their indexes. Otherwise the planner may look for
# all intervals of a day. Hours are added up by run and day before anything is joined: 30 days of ten runs have 7,200 of
# them. Units of a run's hour are those of its interval; they are frozen with the run.
_DAYS = f"""
WITH day AS (
    SELECT * FROM unnest(%(starts)s::timestamptz[], %(ends)s::timestamptz[]) WITH ORDINALITY day (since, until, number)),
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
