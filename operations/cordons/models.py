"""A node that others cordoned, and which runs were told of it. Part of operations.models."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from cluster.models import Cluster
from workloads.models import Run


class NodeCordon(models.Model):
    """`manager`: the field manager that set it, "" if the node does not say it. `since` None: unknown. `ended_at`: when
    it was seen that the node is open again, or gone.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+")
    node = models.CharField(max_length=253)
    node_uid = models.CharField(max_length=36)
    manager = models.CharField(max_length=128, blank=True, default="", db_default="")
    since = models.DateTimeField(null=True, blank=True)
    noticed_at = models.DateTimeField(db_default=Now(), editable=False)
    ended_at = models.DateTimeField(null=True, blank=True)
    # The node was deleted while it was cordoned: nothing was opened.
    is_node_gone = models.BooleanField(default=False, db_default=False)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint("cluster", "node", condition=Q(ended_at=None), name="one_open_cordon_of_a_node"),
        ]

    def __str__(self) -> str:
        return f"cordon of {self.node}"


class CordonNotice(models.Model):
    """A run was told of a cordon, once. `over_told_at`: and once that it is over."""

    cordon = models.ForeignKey(NodeCordon, on_delete=models.CASCADE, related_name="notices", db_index=False)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="+")
    told_at = models.DateTimeField(db_default=Now())
    over_told_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint("cordon", "run", name="cordon_told_once")]

    def __str__(self) -> str:
        return f"{self.cordon_id} {self.run_id}"
