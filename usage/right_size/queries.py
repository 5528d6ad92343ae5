"""Reads what was measured of a workload in two weeks, and the classes that its team may use instead."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from django.db import connection

from accounts.core.actor import Actor
from catalog.classes.capacity.queries import capacities
from catalog.models import GpuClass
from tenants.class_access.queries import visible_classes
from tenants.members.queries import standing_of
from tenants.requests.policy import may_file
from usage.right_size.policy import advise
from usage.right_size.types import MeasuredUse, SizeAdvice, UnitSize
from usage.telemetry.models import RunHour
from workloads.launch.queries import peak_grants
from workloads.models import Run, Workload

PERIOD = timedelta(days=14)


def size_advice(by: Actor, workload: Workload, *, at: datetime) -> SizeAdvice | None:
    """None: its size fits, or too little was measured. One query, and four more if something was measured, six if the
    suggested class needs quota. Several workers are not compared: they are of one size for all.
    """
    gpu_class = workload.gpu_class
    if workload.workers > 1 or gpu_class.sharing != GpuClass.Sharing.NONE:
        return None
    use = _use(workload, since=at - PERIOD)
    if use is None:
        return None
    classes = list(
        visible_classes(by, gpu_class.cluster).filter(
            life_cycle=GpuClass.LifeCycle.ACTIVE,
            sharing=GpuClass.Sharing.NONE,
            interface=GpuClass.Interface.DEVICE_PLUGIN,
            vendor="nvidia",
            product=gpu_class.product,
        )
    )
    free = capacities(gpu_class.cluster, classes)
    granted = peak_grants(workload.tenant_id, [one.pk for one in classes])
    sizes = [_size(one, free[one.pk].free if one.pk in free else None, granted.get(one.pk, 0)) for one in classes]
    found = advise(use, _size(gpu_class, None, 0), sizes)
    if found is None or not found.needs_quota:
        return found
    return replace(found, request_refusal=may_file(by, standing_of(by, workload.tenant)))


def _size(one: GpuClass, free: int | None, granted: int) -> UnitSize:
    is_slice, usable = one.partition != "none", granted + one.borrowing_limit
    return UnitSize(one.slug, one.name, one.product, float(one.weight), one.memory_mib, free, is_slice, usable)


def _use(workload: Workload, *, since: datetime) -> MeasuredUse | None:
    """Of its runs with the class and the units that it has now."""
    with connection.cursor() as cursor:
        cursor.execute(_USE, [workload.pk, workload.gpu_class_id, workload.units, since])
        days, minutes, busy, activity, memory_mib, memory_percent, is_shared = cursor.fetchone()
    if not minutes:
        return None
    return MeasuredUse(
        workload.units, days, minutes / 60, busy, activity, memory_mib, memory_percent, is_shared=is_shared
    )


# The fullest device holds its share of the memory of all: devices of one run are of one size.
_USE = f"""
SELECT count(DISTINCT date_trunc('day', hour.hour)), sum(bit_count(hour.seen_minutes::bit(64))),
       max(hour.busy_devices_max), max(hour.activity_max),
       max(hour.memory_share_max * hour.memory_total_mib / 100 / (run.spec ->> 'units')::int)
           FILTER (WHERE hour.memory_samples > 0),
       max(hour.memory_share_max) FILTER (WHERE hour.memory_samples > 0),
       coalesce(bool_or(hour.measure = '{RunHour.Measure.SHARED}'), false)
  FROM {RunHour._meta.db_table} hour
  JOIN {Run._meta.db_table} run ON run.id = hour.run_id
 WHERE run.workload_id = %s AND hour.gpu_class_id = %s AND (run.spec ->> 'units')::int = %s AND hour.hour >= %s"""
