"""The outcome of a device trial, as a row."""

from __future__ import annotations

from django.db import models


class DeviceTrial(models.Model):
    """What the cluster says about one device of a class, with a selector or without. Written by a worker.

    `resource`: how Kueue counts it, "" unless the verdict is `counted`. `text`: their words, as sent.
    `began_at`: objects of a trial may be in the cluster since then; None: none are.
    """

    class Verdict(models.TextChoices):
        UNKNOWN = "unknown", "not known"
        COUNTED = "counted", "counted by Kueue"
        NOT_COUNTED = "not-counted", "not counted by Kueue"
        # The API server cannot compile the selector.
        REFUSED = "refused", "refused by the API server"
        # The selector fails on a device of the cluster.
        FAILED = "failed", "the selector fails"
        NO_DEVICE = "no-device", "no device matches"
        # A cluster without Kueue.
        ACCEPTED = "accepted", "accepted by the API server"

    cluster = models.ForeignKey("cluster.Cluster", on_delete=models.CASCADE, related_name="+", db_index=False)
    key = models.CharField(max_length=64)
    device_class = models.CharField(max_length=120)
    selector = models.TextField(max_length=10240, blank=True, default="")
    verdict = models.CharField(max_length=12, choices=Verdict, default=Verdict.UNKNOWN)
    resource = models.CharField(max_length=253, blank=True, default="")
    text = models.CharField(max_length=300, blank=True, default="")
    began_at = models.DateTimeField(null=True, blank=True)
    tried_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint("cluster", "key", name="device_trial_once")]

    def __str__(self) -> str:
        return f"{self.device_class}: {self.verdict}"
