"""The units that the Cohort's quota counts on each node, as rows."""

from __future__ import annotations

from django.db import models


class NodeUnits(models.Model):
    """One row per class and node, written when the pool is reconciled. `counted`: units in the quota; `reported`: what
    the node offered when last seen, `since` when. `counted` is greater while a fall is delayed.

    LOGGED, unlike the mirror: after a crash of PostgreSQL the mirror does not know what a node offered before.
    """

    gpu_class = models.ForeignKey("catalog.GpuClass", on_delete=models.CASCADE, related_name="+", db_index=False)
    node = models.CharField(max_length=253)
    counted = models.PositiveIntegerField()
    reported = models.PositiveIntegerField()
    since = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint("gpu_class", "node", name="node_units_once")]

    def __str__(self) -> str:
        return f"{self.node}: {self.counted}"
