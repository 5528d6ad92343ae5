"""The kept log of one worker of a run. Django finds it through workloads.models."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone


class RunLog(models.Model):
    """The last lines of one worker, without secrets. At most LOGS_PER_RUN rows of a run.

    `problem` is "" if the log was read, otherwise why not. `rank` 0: the worker whose log is shown if none is selected.
    """

    class Problem(models.TextChoices):
        NO_POD = "no_pod", "no pod"
        NOT_STARTED = "not_started", "not started"
        FORBIDDEN = "forbidden", "forbidden"
        REMOVED = "removed", "removed"
        UNREACHABLE = "unreachable", "unreachable"
        TOO_SLOW = "too_slow", "too slow"

    run = models.ForeignKey("workloads.Run", on_delete=models.CASCADE, related_name="logs", db_index=False)
    worker = models.PositiveIntegerField()
    rank = models.PositiveSmallIntegerField()
    text = models.TextField(blank=True, default="")
    is_truncated = models.BooleanField(default=False)
    problem = models.CharField(max_length=20, choices=Problem, blank=True, default="")
    read_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "worker"], name="run_log_once"),
            models.CheckConstraint(condition=Q(problem="") | Q(text=""), name="run_log_or_problem"),
        ]

    def __str__(self) -> str:
        return f"log of worker {self.worker} of run {self.run_id}"
