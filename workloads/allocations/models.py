"""From when to when a run held units. Django finds it through workloads.models."""

from __future__ import annotations

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import DateTimeRangeField, RangeOperators
from django.contrib.postgres.indexes import GistIndex
from django.db import models
from django.db.models import F, Func, Q

from catalog.models import GpuClass
from tenants.models import Namespace


class TsTzRange(Func):
    function = "TSTZRANGE"
    output_field = DateTimeRangeField()


class AllocationInterval(models.Model):
    """Units that a run held from `starts_at` until `ends_at`; None: it holds them now. A run that is preempted and
    queued has no open interval. Units, weight, price and priority are those of the run, frozen.

    Or those of a pod that the portal did not create, in a team's namespace; then run is None, and weight and price are
    those of the class when the pod was first seen.

    `end_reason`: a reason of Kueue's conditions, or "Deleted", "Unseen" (cluster.models.AdmissionPeriod), or the run's
    outcome. `is_exact` False: the end is not, or not yet, that of Kueue's condition.
    """

    class Source(models.TextChoices):
        QUEUE = "queue", "conditions of Kueue"
        # Without a queue, units are held from the start of the first pod.
        START = "start", "start and end of the run"
        # Of a release that recorded no intervals: includes time queued after a preemption.
        EARLIER = "earlier", "first admission and end of the run"
        PODS = "pods", "creation of a pod that belongs to no run"

    run = models.ForeignKey(
        "workloads.Run", on_delete=models.PROTECT, related_name="allocations", db_index=False, null=True, blank=True
    )
    pod_uid = models.CharField(max_length=36, blank=True, default="")
    namespace = models.ForeignKey(Namespace, on_delete=models.PROTECT, related_name="+", db_index=False)
    gpu_class = models.ForeignKey(GpuClass, on_delete=models.PROTECT, related_name="+")
    # The ResourceFlavor that Kueue assigned; "" if none is known.
    flavor = models.CharField(max_length=253, blank=True, default="")
    units = models.PositiveIntegerField()
    # GPU equivalents of one unit.
    weight = models.DecimalField(max_digits=16, decimal_places=12)
    price_per_unit_hour = models.DecimalField(max_digits=12, decimal_places=4)
    priority = models.CharField(max_length=20, blank=True)
    source = models.CharField(max_length=10, choices=Source)
    # Uid of the Kueue Workload; "" of other sources.
    queued_uid = models.CharField(max_length=36, blank=True, default="")
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField(null=True, blank=True)
    end_reason = models.CharField(max_length=120, blank=True, default="")
    is_exact = models.BooleanField(default=True)

    class Meta:
        constraints = [
            models.UniqueConstraint("run", "starts_at", name="allocation_once"),
            models.UniqueConstraint("run", condition=Q(ends_at=None), name="allocation_one_open"),
            models.UniqueConstraint("pod_uid", condition=~Q(pod_uid=""), name="allocation_pod_once"),
            models.CheckConstraint(
                condition=Q(source="pods", run=None) | ~Q(source="pods") & Q(run__isnull=False, pod_uid=""),
                name="allocation_of_run_or_pod",
            ),
            models.CheckConstraint(condition=Q(ends_at=None) | Q(ends_at__gte=F("starts_at")), name="allocation_order"),
            ExclusionConstraint(
                name="allocation_no_overlap",
                expressions=[
                    ("run", RangeOperators.EQUAL),
                    (TsTzRange("starts_at", "ends_at"), RangeOperators.OVERLAPS),
                ],
            ),
        ]
        indexes = [
            # Those of one team or of all in a period: reads none but these, however long the history is.
            GistIndex(TsTzRange("starts_at", "ends_at"), "namespace", name="allocation_by_period"),
            # Those of one team: by period alone, the index above is searched through all teams.
            models.Index(fields=["namespace", "starts_at"], name="allocation_by_namespace"),
            # Ends that are corrected when Kueue's is known.
            models.Index(fields=["ends_at"], condition=Q(is_exact=False), name="allocation_inexact"),
        ]

    def __str__(self) -> str:
        return f"{self.units} units of {self.run_id or self.pod_uid} from {self.starts_at}"
