"""Runs whose GPUs are idle."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from catalog.models import GpuClass
from tenants.models import Namespace
from workloads.models import Run


class IdleRun(models.Model):
    """A run in its present idle stretch, which began at `idle_since`. Deleted when the stretch ends: when a minute is
    busy, the notebook is used, or the units are released.

    `is_idle` False: the last verdict was "unknown", and the row is that of the last one that was not. The evidence is
    that of `judged_at`: of the `minutes` of the class's rule `seen_minutes` were measured. Mean activity and memory
    None: not known. Units and price are those of its allocation.

    `told_at`: when its users were first told. `stops_at`: the announced stop. `kept_until`: it was kept, once.
    """

    run = models.OneToOneField(Run, on_delete=models.CASCADE, related_name="+", primary_key=True)
    namespace = models.ForeignKey(Namespace, on_delete=models.CASCADE, related_name="+")
    gpu_class = models.ForeignKey(GpuClass, on_delete=models.CASCADE, related_name="+")
    units = models.PositiveIntegerField()
    price_per_unit_hour = models.DecimalField(max_digits=12, decimal_places=4)
    is_idle = models.BooleanField(default=True)
    idle_since = models.DateTimeField()
    judged_at = models.DateTimeField()
    minutes = models.PositiveIntegerField()
    seen_minutes = models.PositiveIntegerField()
    activity_percent = models.FloatField(null=True, blank=True)
    memory_mib = models.FloatField(null=True, blank=True)
    told_at = models.DateTimeField(null=True, blank=True)
    stops_at = models.DateTimeField(null=True, blank=True)
    kept_until = models.DateTimeField(null=True, blank=True)
    kept_reason = models.CharField(max_length=200, blank=True, default="")
    kept_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(stops_at=None) | Q(told_at__isnull=False), name="idle_run_told_before_it_stops"
            ),
            models.CheckConstraint(
                condition=Q(kept_until=None) | ~Q(kept_reason=""), name="idle_run_kept_for_a_reason"
            ),
        ]

    def __str__(self) -> str:
        return f"idle run {self.run_id} since {self.idle_since}"
