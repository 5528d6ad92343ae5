"""Runs that held units, as rows, and what a fake Prometheus answers about their pods."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

from accounts.models import User
from catalog.models import GpuClass
from cluster.manifests.names import run_name
from tenants.models import Namespace
from tests.support.rows import running
from usage.telemetry.models import RunHour
from usage.telemetry.types import RangeAnswer, Series
from workloads.models import AllocationInterval, Run, Workload

MINUTE = timedelta(minutes=1)
# Fields of classes.
SLICE: dict[str, Any] = {"partition": "1g.10gb", "resource": "nvidia.com/mig-1g.10gb", "node_labels": {}}
TIME_SLICED: dict[str, Any] = {"sharing": "time-slicing", "replicas": 4, "units_per_workload": 1, "node_labels": {}}


def held_run(
    namespace: Namespace, gpu_class: GpuClass, by: User, since: datetime, until: datetime | None = None, **fields: Any
) -> Run:
    """A run that holds its units from `since` until `until`; None: it holds them now."""
    name = fields.pop("name", f"w{Workload.objects.count()}")
    run = running.workload(namespace, gpu_class, name=name, by=by, **fields).runs.get()
    run.started_at, run.ended_at, run.outcome = since, until, "succeeded" if until else ""
    run.save()
    hold(run, since, until)
    return run


def hold(run: Run, since: datetime, until: datetime | None = None) -> None:
    gpu_class = run.workload.gpu_class
    AllocationInterval.objects.create(
        run=run,
        namespace=run.workload.namespace,
        gpu_class=gpu_class,
        units=run.spec["units"] * run.spec.get("workers", 1),
        weight=gpu_class.weight,
        price_per_unit_hour=gpu_class.price_per_unit_hour,
        priority="batch",
        source=AllocationInterval.Source.START,
        starts_at=since,
        ends_at=until,
    )


def hour_row(run: Run, hour: datetime, seen: int, percent: float) -> RunHour:
    minutes = seen.bit_count()
    return RunHour(
        run=run, hour=hour, namespace=run.workload.namespace, gpu_class=run.workload.gpu_class, measure="utilisation",
        seen_minutes=seen, busy_minutes=seen, activity_sum=percent * minutes, activity_max=min(100.0, percent + 20),
        activity_last=percent, busy_devices_max=1, memory_samples=minutes, memory_sum_mib=30_720.0 * minutes,
        memory_max_mib=40_960.0, memory_last_mib=30_720.0, memory_total_mib=81_920.0, memory_share_max=50.0,
        power_samples=minutes, power_sum_w=310.0 * minutes, power_last_w=310.0,
    )  # fmt: skip


def pod_name(run: Run, *, index: int | None = None, suffix: str = "ab1cd") -> str:
    job = run_name(run.workload.name, run.number)
    return f"{job}-{suffix}" if index is None else f"{job}-{index}-{suffix}"


def device(run: Run, card: str = "GPU-1", *, slice_: str = "", **pod: Any) -> dict[str, str]:
    labels = {"namespace": run.workload.namespace.name, "pod": pod_name(run, **pod), "UUID": card}
    return labels | ({"GPU_I_ID": slice_} if slice_ else {})


# (labels, minute) → value of a field; None: there is no sample.
Values = Callable[[str, dict[str, str], datetime], float | None]


class FakePrometheus:
    """Answers as Prometheus does to the queries of usage.telemetry.promql, which it tells apart by their first metric.
    `asked`: (field, start, end).
    """

    FIRST = {
        "DCGM_FI_DEV_GPU_UTIL": "utilisation",
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE": "engine",
        "DCGM_FI_DEV_FB_USED": "memory_used",
        "DCGM_FI_DEV_FB_FREE": "memory_free",
        "DCGM_FI_DEV_POWER_USAGE": "power",
    }

    def __init__(self, devices: Iterable[dict[str, str]], values: Values) -> None:
        self.devices, self.values = list(devices), values
        self.asked: list[tuple[str, datetime, datetime]] = []
        self.raises: Exception | None = None
        self.is_partial = False

    def __call__(self, query: str, start: datetime, end: datetime) -> RangeAnswer:
        if self.raises is not None:
            raise self.raises
        field = next(name for metric, name in self.FIRST.items() if f"({metric}{{" in query)
        self.asked.append((field, start, end))
        series = []
        for labels in self.devices:
            points, at = [], start
            while at <= end:
                # A value at the end of a minute is of that minute.
                value = self.values(field, labels, at - MINUTE)
                if value is not None:
                    points.append((at.timestamp(), value))
                at += MINUTE
            series.append(Series(labels, tuple(points)))
        return RangeAnswer(tuple(series), self.is_partial)
