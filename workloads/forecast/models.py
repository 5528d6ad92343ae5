"""Start estimates that were shown to users, kept to compare them with the actual starts."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

# The `basis` of a row without an estimate; otherwise workloads.status.estimates.estimate.Basis.
NO_BASIS = "none"


class StartPrediction(models.Model):
    """The estimate of a queued run, from `made_at` until at least `checked_at`. No range: there was no estimate."""

    run = models.ForeignKey("workloads.Run", on_delete=models.CASCADE, related_name="predictions", db_index=False)
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
