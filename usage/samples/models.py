"""What namespaces used in an hour, and how many minutes of the hour could be read.

The names of the tables are those of the app that had these models first, so that both releases work during an upgrade.
"""

from __future__ import annotations

from django.db import models

from catalog.models import GpuClass
from cluster.models import Cluster
from tenants.models import Namespace


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
