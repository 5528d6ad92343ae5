"""Reads what was measured of the memory of the GPUs that a time-sliced class shares."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Count, Q

from catalog.models import GpuClass
from usage.right_size.replicas.policy import FULL_PERCENT, fewer_replicas
from usage.right_size.replicas.types import FewerReplicas, SharedMemoryUse
from usage.telemetry.models import RunHour
from workloads.models import Run

PERIOD = timedelta(days=14)
# As workloads/status/explain has it.
OUT_OF_MEMORY = "out_of_gpu_memory"


def replicas_advice(one: GpuClass, *, units: int | None, promised: int, at: datetime) -> FewerReplicas | None:
    """`units`: allocatable now, None: unknown; `promised`: allocated to teams. Two queries for a time-sliced class,
    none for another.
    """
    if one.sharing != GpuClass.Sharing.TIME_SLICING:
        return None
    since = at - PERIOD
    failed = Q(reason=OUT_OF_MEMORY)
    runs = Run.objects.filter(started_at__gte=since, ended_at__isnull=False, spec__gpu_class=one.slug).aggregate(
        runs=Count("pk"),
        failed_runs=Count("pk", filter=failed),
        failed_workloads=Count("workload", filter=failed, distinct=True),
    )
    return fewer_replicas(
        SharedMemoryUse(
            replicas=one.replicas,
            period_days=PERIOD.days,
            units=units,
            promised=promised,
            **runs,
            **_memory(one, since),
        )
    )


def _memory(one: GpuClass, since: datetime) -> dict[str, Any]:
    with connection.cursor() as cursor:
        cursor.execute(_MEMORY, {"class": one.pk, "since": since, "full": FULL_PERCENT})
        days, hours, percent_max, full_days, full_hours = cursor.fetchone()
    return {
        "days": days,
        "hours": hours,
        "memory_percent_max": percent_max,
        "full_days": full_days,
        "full_hours": full_hours,
    }


_MEMORY = f"""
SELECT count(DISTINCT date_trunc('day', hour)), count(DISTINCT hour), max(memory_share_max),
       count(DISTINCT date_trunc('day', hour)) FILTER (WHERE memory_share_max >= %(full)s),
       count(DISTINCT hour) FILTER (WHERE memory_share_max >= %(full)s)
  FROM {RunHour._meta.db_table}
 WHERE gpu_class_id = %(class)s AND hour >= %(since)s AND measure = '{RunHour.Measure.SHARED}' AND memory_samples > 0"""
