"""Reads what the verdicts need: runs that hold units of a class with an idle action, and their measured hours."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db import connection

from catalog.models import GpuClass
from usage.idle.models import IdleRun
from usage.idle.policy import CURRENT_WITHIN, Held, MeasuredHour, NotebookAnswer
from usage.telemetry.models import RunHour, TelemetrySource
from usage.telemetry.types import MINUTE, hour_of
from workloads.models import AllocationInterval, NotebookWatch, Run, Workload

WATCHES_AT_ONCE = 500


@dataclass(frozen=True)
class HeldRun:
    """A run that holds units of a class with an idle action now. `read_until`: of the Prometheus of its cluster.
    `watch_id`: of a notebook that is asked, None if it is no notebook. `kept_until`: by the rule of idle notebooks.
    """

    run_id: int
    namespace_id: int
    gpu_class_id: int
    units: int
    price_per_unit_hour: Decimal
    action: str
    held: Held
    read_until: datetime | None
    watch_id: int | None
    kept_until: datetime | None


def held_runs(now: datetime) -> list[HeldRun]:
    """Those that may be idle, and those that have a row. One query."""
    with connection.cursor() as cursor:
        cursor.execute(_HELD, {"now": now})
        return [
            HeldRun(
                run_id,
                namespace_id,
                class_id,
                units,
                price,
                action,
                Held(since, minutes, answer=NotebookAnswer(*answer) if kind == Workload.Kind.NOTEBOOK else None),
                read_until,
                watch_id,
                kept_until,
            )
            for (
                run_id,
                namespace_id,
                class_id,
                units,
                price,
                action,
                since,
                minutes,
                kind,
                read_until,
                watch_id,
                kept_until,
                *answer,
            ) in cursor.fetchall()
        ]


def measured_hours(held: Collection[HeldRun], now: datetime) -> Mapping[int, list[MeasuredHour]]:
    """Of each run the hours that its verdict needs. One query; nothing of runs whose Prometheus is silent."""
    asked = [
        (one.run_id, hour_of(one.read_until - one.held.idle_minutes * MINUTE), hour_of(one.held.since))
        for one in held
        if one.read_until is not None and now - one.read_until <= CURRENT_WITHIN
    ]
    found: dict[int, list[MeasuredHour]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(_HOURS, [list(column) for column in zip(*asked, strict=True)] if asked else [[], [], []])
        for run_id, hour, seen, busy, activity, memory, measure in cursor.fetchall():
            is_shared = measure == RunHour.Measure.SHARED
            found[run_id].append(MeasuredHour(hour, seen, busy, activity, memory, is_shared))
    return found


def watch_notebooks() -> int:
    """Notebooks of classes whose idle action needs their answer are asked from now on. Returns how many are new."""
    with connection.cursor() as cursor:
        cursor.execute(_UNWATCHED, [WATCHES_AT_ONCE])
        new = [NotebookWatch(run_id=pk) for (pk,) in cursor.fetchall()]
    return len(NotebookWatch.objects.bulk_create(new, ignore_conflicts=True))


_FROM = f"""
  FROM {AllocationInterval._meta.db_table} held
  JOIN {Run._meta.db_table} run ON run.id = held.run_id AND run.ended_at IS NULL AND run.stop_requested_at IS NULL
  JOIN {Workload._meta.db_table} workload ON workload.id = run.workload_id AND workload.delete_requested_at IS NULL
  JOIN {GpuClass._meta.db_table} class
    ON class.id = held.gpu_class_id AND class.idle_action <> 'off' AND class.sharing = 'none'
  LEFT JOIN {NotebookWatch._meta.db_table} watch ON watch.run_id = run.id"""
# Without those that a whole hour of the rule's minutes shows to be busy. Minutes of two hours are for the policy.
_HELD = f"""
SELECT run.id, held.namespace_id, class.id, held.units, held.price_per_unit_hour, class.idle_action, held.starts_at,
       class.idle_minutes, workload.kind, source.read_until, watch.id, watch.kept_until, watch.answered_at,
       watch.last_activity, coalesce((watch.evidence ->> 'computing')::int, 0) > 0, coalesce(watch.problem, '') <> ''
{_FROM}
  LEFT JOIN {TelemetrySource._meta.db_table} source ON source.cluster_id = class.cluster_id
  LEFT JOIN {IdleRun._meta.db_table} idle ON idle.run_id = run.id
 WHERE held.ends_at IS NULL
   AND (idle.run_id IS NOT NULL
        OR (held.starts_at <= %(now)s - class.idle_minutes * interval '1 minute'
            AND NOT EXISTS (
                SELECT FROM {RunHour._meta.db_table} seen
                 WHERE seen.run_id = run.id AND seen.busy_minutes <> 0
                   AND seen.hour >= %(now)s - class.idle_minutes * interval '1 minute')))"""
_UNWATCHED = f"""
SELECT run.id {_FROM}
 WHERE held.ends_at IS NULL AND workload.kind = 'notebook' AND run.ready_at IS NOT NULL AND watch.id IS NULL
 ORDER BY run.id LIMIT %s"""
_HOURS = f"""
SELECT asked.run_id, seen.hour, seen.seen_minutes, seen.busy_minutes, seen.activity_sum,
       seen.memory_last_mib, seen.measure
  FROM unnest(%s::bigint[], %s::timestamptz[], %s::timestamptz[]) AS asked (run_id, first_hour, held_hour)
 CROSS JOIN LATERAL (
       SELECT within.* FROM {RunHour._meta.db_table} within
        WHERE within.run_id = asked.run_id AND within.hour >= asked.first_hour
        UNION ALL
       (SELECT earlier.* FROM {RunHour._meta.db_table} earlier
         WHERE earlier.run_id = asked.run_id AND earlier.hour < asked.first_hour AND earlier.hour >= asked.held_hour
           AND earlier.busy_minutes <> 0
         ORDER BY earlier.hour DESC LIMIT 1)) seen"""
