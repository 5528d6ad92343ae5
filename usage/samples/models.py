"""What namespaces used in an hour, how many minutes of the hour could be read, and the capacity of classes over time.

The first two tables have the names of the app that had these models first, so that both releases work during an
upgrade.
"""

from __future__ import annotations

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import RangeOperators
from django.contrib.postgres.indexes import GistIndex
from django.db import models
from django.db.models import F, Q, Value

from catalog.models import GpuClass
from cluster.models import Cluster
from tenants.models import Namespace
from workloads.allocations.models import TsTzRange


class UsageSample(models.Model):
    """What a namespace used of a class in one hour, sampled once a minute (usage/samples/sampling.py).

    `units_max` and `units_sum` over the `samples` minutes in which it used any. Minutes without use write nothing:
    a mean divides by the minutes of `UsageHour`.
    """

    pk = models.CompositePrimaryKey("namespace_id", "gpu_class_id", "hour")
    namespace = models.ForeignKey(Namespace, on_delete=models.CASCADE, related_name="+", db_index=False)
    gpu_class = models.ForeignKey(GpuClass, on_delete=models.CASCADE, related_name="+", db_index=False)
    hour = models.DateTimeField(db_index=True)
    units_max = models.PositiveIntegerField()
    units_sum = models.PositiveIntegerField()
    samples = models.PositiveSmallIntegerField()

    class Meta:
        db_table = "workloads_usagesample"

    def __str__(self) -> str:
        return f"use of {self.gpu_class_id} by {self.namespace_id} from {self.hour}"


class UsageHour(models.Model):
    """`minutes`: how many minutes of the hour could be read, because the mirror was current; `last_minute`: the last of
    them.
    """

    pk = models.CompositePrimaryKey("cluster_id", "hour")
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+", db_index=False)
    hour = models.DateTimeField()
    minutes = models.PositiveSmallIntegerField()
    last_minute = models.DateTimeField()

    class Meta:
        db_table = "workloads_usagehour"

    def __str__(self) -> str:
        return f"{self.minutes} minutes seen from {self.hour}"


class CapacityInterval(models.Model):
    """A class had `units` on ready nodes from `starts_at` until `ends_at`, which is the last minute in which they were
    seen. Times in no interval are not recorded: whatever happened then is unknown, and not 0 units.
    """

    gpu_class = models.ForeignKey(GpuClass, on_delete=models.CASCADE, related_name="+", db_index=False)
    units = models.PositiveIntegerField()
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint("gpu_class", "starts_at", name="capacity_once"),
            models.CheckConstraint(condition=Q(ends_at__gte=F("starts_at")), name="capacity_order"),
            ExclusionConstraint(
                name="capacity_no_overlap",
                expressions=[
                    ("gpu_class", RangeOperators.EQUAL),
                    (TsTzRange("starts_at", "ends_at"), RangeOperators.OVERLAPS),
                ],
            ),
        ]
        # Also those that were only seen once, which are empty ranges above.
        indexes = [GistIndex(TsTzRange("starts_at", "ends_at", Value("[]")), name="capacity_by_period")]

    def __str__(self) -> str:
        return f"{self.units} units of {self.gpu_class_id} from {self.starts_at}"
