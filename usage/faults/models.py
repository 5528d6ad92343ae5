"""Faults of GPUs, the runs that they concern, and how far Prometheus was read for them."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from cluster.models import Cluster
from usage.faults.types import FaultKind
from workloads.models import Run


class GpuFault(models.Model):
    """A fault of one GPU. There is one open row for each cluster, GPU, MIG instance, kind and code.

    `node`, `device`, `instance` and `gpu_model` are as the exporter names them: its host name, the UUID, the MIG
    instance ("": the GPU), the model. `code` of an XID, 0 for other kinds. `value`: see usage/faults/promql.py.

    `last_seen`: the last minute in which it was there. `measured_at`: the last minute in which its condition could be
    seen to be there or not; a GPU without metrics is not healthy, and its faults stay open. `cleared_at`: it was seen
    to be over, or, with `is_gone`, had no metrics for days. `told_at`: when operators were told.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+", db_index=False)
    node = models.CharField(max_length=253)
    device = models.CharField(max_length=80)
    instance = models.CharField(max_length=9, blank=True, default="")
    gpu_model = models.CharField(max_length=80, blank=True, default="")
    kind = models.CharField(max_length=20)
    code = models.PositiveSmallIntegerField(default=0)
    value = models.FloatField()
    first_seen = models.DateTimeField()
    last_seen = models.DateTimeField()
    measured_at = models.DateTimeField()
    cleared_at = models.DateTimeField(null=True, blank=True)
    is_gone = models.BooleanField(default=False)
    told_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "device", "instance", "kind", "code"],
                condition=Q(cleared_at=None),
                name="gpu_fault_open_once",
            ),
            models.CheckConstraint(condition=Q(kind__in=[str(one) for one in FaultKind]), name="gpu_fault_kind_known"),
        ]
        indexes = [models.Index(fields=["cluster", "cleared_at"], name="gpu_fault_by_end")]

    def __str__(self) -> str:
        return f"{self.device} on {self.node}"


class FaultRun(models.Model):
    """A run that held the GPU when the fault was there. `told_at`: when its users were told, None: not yet."""

    fault = models.ForeignKey(GpuFault, on_delete=models.CASCADE, related_name="concerned", db_index=False)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="+")
    since = models.DateTimeField()
    told_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["fault", "run"], name="fault_run_once")]
        indexes = [models.Index(fields=["id"], condition=Q(told_at=None), name="fault_run_untold")]

    def __str__(self) -> str:
        return f"run {self.run_id} at fault {self.fault_id}"


class FaultSource(models.Model):
    """How far the Prometheus of a cluster was read for faults. `problem`: what the last attempt met, "" if it
    succeeded; then `problem_since` is None.
    """

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="+", primary_key=True)
    read_until = models.DateTimeField(null=True, blank=True)
    problem = models.CharField(max_length=300, blank=True, default="")
    problem_since = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"GPU faults of {self.cluster_id} until {self.read_until}"
