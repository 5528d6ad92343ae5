"""What people were told of a start, kept beside what happened."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

# The `basis` of what nobody could tell; else workloads.status.estimates.estimate.Basis.
NO_BASIS = "none"


class StartPrediction(models.Model):
    """What was told of a run that waited, from `made_at` until at least `checked_at`. No range: nobody could tell."""

    run = models.ForeignKey("workloads.Run", on_delete=models.CASCADE, related_name="predictions")
    made_at = models.DateTimeField(db_default=Now())
    checked_at = models.DateTimeField(db_default=Now())
    earliest = models.DateTimeField(null=True, blank=True)
    latest = models.DateTimeField(null=True, blank=True)
    basis = models.CharField(max_length=10)

    class Meta:
        indexes = [models.Index(fields=["run", "made_at"], name="prediction_of_run")]
        constraints = [
            models.CheckConstraint(
                condition=Q(earliest=None, latest=None, basis=NO_BASIS)
                | (Q(earliest__isnull=False, latest__gte=F("earliest")) & ~Q(basis=NO_BASIS)),
                name="prediction_range",
            ),
        ]

    def __str__(self) -> str:
        return f"prediction for run {self.run_id}"
