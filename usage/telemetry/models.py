"""What was measured of a run and of a class in an hour, and until when Prometheus was read."""

from __future__ import annotations

from django.db import models

from catalog.models import GpuClass
from cluster.models import Cluster
from tenants.models import Namespace
from workloads.models import Run


class RunHour(models.Model):
    """What the devices of a run did in one hour. Bit n of `seen_minutes` is set if minute n was measured on all devices
    while the run held its units, and bit n of `busy_minutes` if one was busy then (usage/telemetry/types.py). A minute
    that was not measured is in no sum.

    Activity in percent: per minute the mean of the run's devices; `activity_max` is that of its busiest device, and
    `busy_devices_max` how many were busy at the same time. Memory in MiB, per minute the sum of the devices;
    `memory_share_max` is the fullest device, in percent. Power in watts, the sum of the devices. `…_last` are those of
    the last minute that was measured.
    """

    class Measure(models.TextChoices):
        UTILISATION = "utilisation", "GPU utilisation"
        ENGINE = "engine", "engine activity"
        # Of the card, and so of all that share it.
        SHARED = "shared", "activity of the shared GPU"

    pk = models.CompositePrimaryKey("run_id", "hour")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="+", db_index=False)
    hour = models.DateTimeField(db_index=True)
    namespace = models.ForeignKey(Namespace, on_delete=models.CASCADE, related_name="+", db_index=False)
    gpu_class = models.ForeignKey(GpuClass, on_delete=models.CASCADE, related_name="+", db_index=False)
    measure = models.CharField(max_length=12, choices=Measure)
    seen_minutes = models.BigIntegerField()
    busy_minutes = models.BigIntegerField()
    activity_sum = models.FloatField()
    activity_max = models.FloatField()
    activity_last = models.FloatField(default=0)
    busy_devices_max = models.PositiveSmallIntegerField()
    memory_samples = models.PositiveSmallIntegerField(default=0)
    memory_sum_mib = models.FloatField(default=0)
    memory_max_mib = models.FloatField(default=0)
    memory_last_mib = models.FloatField(null=True, blank=True)
    memory_total_mib = models.FloatField(default=0)
    memory_share_max = models.FloatField(default=0)
    power_samples = models.PositiveSmallIntegerField(default=0)
    power_sum_w = models.FloatField(default=0)
    power_last_w = models.FloatField(null=True, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["namespace", "hour"], name="run_hour_by_namespace"),
            models.Index(fields=["gpu_class", "hour"], name="run_hour_by_class"),
        ]

    def __str__(self) -> str:
        return f"{self.measure} of {self.run_id} from {self.hour}"


class ClassHour(models.Model):
    """The sum of the hours of a class's runs (usage/telemetry/class_hours.py): unit-hours that were measured, and those
    times activity. Without shared GPUs, whose activity is not that of one run.
    """

    pk = models.CompositePrimaryKey("gpu_class_id", "hour")
    gpu_class = models.ForeignKey(GpuClass, on_delete=models.CASCADE, related_name="+", db_index=False)
    hour = models.DateTimeField(db_index=True)
    measured_hours = models.FloatField()
    busy_hours = models.FloatField()

    def __str__(self) -> str:
        return f"{self.measured_hours} unit-hours of {self.gpu_class_id} from {self.hour}"


class TelemetrySource(models.Model):
    """How far the Prometheus of a cluster was read. `read_until`: the end of the last minute that was read.
    `missing_since` until `missing_until`: minutes before that which could not be read, and are read later; both None if
    there are none.

    `problem`: what the last attempt met, "" if it succeeded; then `problem_since` is None. `is_partial`: the last
    answer carried warnings, as that of a store of several parts does if one is away.
    """

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="+", primary_key=True)
    read_until = models.DateTimeField(null=True, blank=True)
    missing_since = models.DateTimeField(null=True, blank=True)
    missing_until = models.DateTimeField(null=True, blank=True)
    problem = models.CharField(max_length=300, blank=True, default="")
    problem_since = models.DateTimeField(null=True, blank=True)
    is_partial = models.BooleanField(default=False)

    def __str__(self) -> str:
        return f"telemetry of {self.cluster_id} until {self.read_until}"
