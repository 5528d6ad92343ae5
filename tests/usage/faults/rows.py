"""Faults as rows, and what a fake Prometheus answers about them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from cluster.models import Cluster
from tests.usage.telemetry.rows import pod_name
from usage.faults.models import FaultRun, FaultSource, GpuFault
from usage.telemetry.types import RangeAnswer, Series
from workloads.models import Run

MINUTE = timedelta(minutes=1)
DEVICE = "GPU-5fd4f087-86f3-7a43-b711-4771313afc50"


def fault(cluster: Cluster, *runs: Run, **fields: Any) -> GpuFault:
    """An open XID 79, seen a moment ago."""
    now = timezone.now()
    values = {
        "node": "gpu-1", "device": DEVICE, "gpu_model": "NVIDIA A100-SXM4-80GB", "kind": "xid", "code": 79, "value": 79,
        "first_seen": now - 3 * MINUTE, "last_seen": now, "measured_at": now, "told_at": now,
    }  # fmt: skip
    row = GpuFault.objects.create(cluster=cluster, **{**values, **fields})
    FaultRun.objects.bulk_create(FaultRun(fault=row, run=run, since=now, told_at=now) for run in runs)
    FaultSource.objects.update_or_create(cluster=cluster, defaults={"read_until": now})
    return row


@dataclass(frozen=True)
class Fires:
    kind: str
    value: float = 1.0
    device: str = DEVICE
    instance: str = ""
    node: str = "gpu-1"
    model: str = "NVIDIA A100-SXM4-80GB"

    @property
    def labels(self) -> dict[str, str]:
        names = {"fault": self.kind, "UUID": self.device, "hostname": self.node, "modelName": self.model}
        return names | ({"GPU_I_ID": self.instance} if self.instance else {})


@dataclass
class FakePrometheus:
    """Answers the three queries of usage.faults.promql. `measured`: whether GPUs that have no fault now are."""

    firing: list[Fires] = field(default_factory=list)
    pods: list[dict[str, str]] = field(default_factory=list)
    measured: list[Fires] = field(default_factory=list)
    is_partial: bool = False
    raises: Exception | None = None
    asked: list[tuple[str, datetime]] = field(default_factory=list)

    def __call__(self, query: str, start: datetime, end: datetime) -> RangeAnswer:
        assert start == end
        if self.raises is not None:
            raise self.raises
        name = "holders" if "FB_USED" in query else "measured" if "UUID=~" in query else "firing"
        self.asked.append((name, start))
        if name == "holders":
            return self._answer((one, 1.0) for one in self.pods)
        found = self.firing if name == "firing" else self.measured
        return self._answer((one.labels, one.value) for one in found)

    def _answer(self, found: Iterable[tuple[dict[str, str], float]]) -> RangeAnswer:
        return RangeAnswer(tuple(Series(labels, ((0.0, value),)) for labels, value in found), self.is_partial)


def pod(run: Run, device: str = DEVICE, *, instance: str = "", **names: Any) -> dict[str, str]:
    labels = {"namespace": run.workload.namespace.name, "pod": pod_name(run, **names), "UUID": device}
    return labels | ({"GPU_I_ID": instance} if instance else {})
