"""Runs that hold units, and what was measured of them minute by minute, as rows."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.utils import timezone

from catalog.models import GpuClass
from cluster.models import Cluster
from tenants.models import Namespace
from tests.support.rows import running
from usage.idle.models import IdleRun
from usage.telemetry.models import RunHour, TelemetrySource
from usage.telemetry.types import MINUTE, bit_of, hour_of
from workloads.models import AllocationInterval, Run

HOUR = timedelta(hours=1)


def holder(
    namespace: Namespace, gpu_class: GpuClass, *, since: datetime, by: Any, name: str = "train", **fields: Any
) -> Run:
    """A run, of a job unless `fields` say otherwise, that holds its units since then."""
    workload = running.workload(namespace, gpu_class, name=name, by=by, **{"kind": "job", **fields})
    Run.objects.filter(workload=workload).update(admitted_at=since, started_at=since, ready_at=since)
    run = workload.runs.get()
    allocated(run, since)
    return run


def allocated(run: Run, since: datetime) -> AllocationInterval:
    workload = run.workload
    return AllocationInterval.objects.create(
        run=run,
        namespace=workload.namespace,
        gpu_class=workload.gpu_class,
        units=workload.units,
        weight=1,
        price_per_unit_hour=workload.gpu_class.price_per_unit_hour,
        source=AllocationInterval.Source.QUEUE,
        starts_at=since,
    )


def measured(
    run: Run,
    since: datetime,
    until: datetime,
    *,
    busy: Collection[datetime] = (),
    missing: Collection[datetime] = (),
    activity: float = 0.4,
    memory_mib: float | None = 0.0,
    measure: RunHour.Measure = RunHour.Measure.UTILISATION,
) -> None:
    """All minutes from `since` to `until`, except the missing ones, in addition to those that were measured before."""
    allocation = AllocationInterval.objects.filter(run=run).latest("starts_at")
    for number in range((until - since) // MINUTE):
        minute = since + number * MINUTE
        if minute in missing:
            continue
        values = {
            "namespace": allocation.namespace,
            "gpu_class": allocation.gpu_class,
            "measure": measure,
            "seen_minutes": 0,
            "busy_minutes": 0,
            "activity_sum": 0.0,
            "activity_max": 0.0,
            "busy_devices_max": 0,
        }
        row, _ = RunHour.objects.get_or_create(run=run, hour=hour_of(minute), defaults=values)
        row.seen_minutes |= bit_of(minute)
        row.busy_minutes |= bit_of(minute) if minute in busy else 0
        row.activity_sum += activity
        row.memory_last_mib = memory_mib
        row.save()


def read(cluster: Cluster, until: datetime) -> None:
    """Prometheus was read until then."""
    TelemetrySource.objects.update_or_create(cluster=cluster, defaults={"read_until": until})


def idle(run: Run, *, since: datetime | None = None, **fields: Any) -> IdleRun:
    """The row of a run that is idle since 90 minutes ago, unless `since` says otherwise."""
    workload, now = run.workload, timezone.now()
    values: dict[str, Any] = {
        "namespace": workload.namespace,
        "gpu_class": workload.gpu_class,
        "units": workload.units,
        "price_per_unit_hour": Decimal("2.5"),
        "idle_since": since or now - timedelta(minutes=90),
        "judged_at": now,
        "minutes": 60,
        "seen_minutes": 58,
        "activity_percent": 0.4,
        "memory_mib": 40_960.0,
        "told_at": now - timedelta(minutes=30),
    }
    return IdleRun.objects.create(run=run, **{**values, **fields})
