"""What was measured of the interconnect of nodes, as rows."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from cluster.models import Cluster


class NodeMeasurement(models.Model):
    """Rows are only added: the last by `measured_on` that is not withdrawn counts, the others are its history.

    `product`, `driver` and `node_uid` are those of the node when it was recorded, "" if it did not say them.
    """

    class Kind(models.TextChoices):
        LINKS = "links", "links between GPUs"
        ALL_REDUCE = "all_reduce", "all_reduce"

    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="+", db_index=False)
    node = models.CharField(max_length=253)
    kind = models.CharField(max_length=10, choices=Kind)
    measured_on = models.DateField()
    recorded_at = models.DateTimeField(db_default=Now())
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", db_index=False)
    gpus = models.PositiveIntegerField()
    # Of the kind "links": a list of rows, as in Links.
    links = models.JSONField(null=True)
    # Of the kind "all_reduce".
    bus_gb_s = models.DecimalField(max_digits=8, decimal_places=2, null=True)
    message_bytes = models.BigIntegerField(null=True)
    product = models.CharField(max_length=120, blank=True, db_default="", default="")
    driver = models.CharField(max_length=60, blank=True, db_default="", default="")
    node_uid = models.CharField(max_length=64, blank=True, db_default="", default="")
    withdrawn_at = models.DateTimeField(null=True)
    withdrawn_because = models.CharField(max_length=500, blank=True, db_default="", default="")

    class Meta:
        indexes = [
            models.Index(fields=["cluster", "node", "kind", "-measured_on", "-id"], name="node_measurement_latest")
        ]

    def __str__(self) -> str:
        return self.node
