"""A maintenance, its nodes with their step, and who was told of it. Part of operations.models."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from cluster.models import Cluster
from operations.maintenance.steps import Step
from portal.core.due import Due
from portal.core.hints import BACKGROUND
from workloads.models import Run


class Maintenance(Due):
    """`holds_from` ≤ `starts_at` < `ends_at`: nothing new starts on the nodes from the first; they are drained at the
    second; the third is when users expect them back. A node that takes longer than `stuck_minutes` for one step is
    reported as stuck.

    `mig_config`, `plugin_config`: values of node labels that are set, "" for none. `expected`: the devices that each
    node must offer afterwards {resource: number}; {} for the same as before.
    """

    class Kind(models.TextChoices):
        REPARTITION = "repartition", "MIG layout or sharing"
        DRIVER = "driver", "driver update"
        HARDWARE = "hardware", "hardware"
        OTHER = "other", "other work"

    class Outcome(models.TextChoices):
        DONE = "done", "done"
        CANCELED = "canceled", "canceled"
        UNVERIFIED = "unverified", "released without verification"

    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="+")
    kind = models.CharField(max_length=11, choices=Kind)
    reason = models.CharField(max_length=200)
    holds_from = models.DateTimeField()
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    stuck_minutes = models.PositiveIntegerField(default=30, db_default=30)
    mig_config = models.CharField(max_length=63, blank=True, default="", db_default="")
    plugin_config = models.CharField(max_length=63, blank=True, default="", db_default="")
    expected = models.JSONField(default=dict, db_default={}, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    # What the portal does not do itself is done, says an operator.
    confirmed_at = models.DateTimeField(null=True, blank=True)
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    # Nothing more is waited for or verified.
    release_requested_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    outcome = models.CharField(max_length=10, choices=Outcome, blank=True, default="", db_default="")

    queue = BACKGROUND

    class Meta(Due.Meta):
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(holds_from__lte=F("starts_at"), starts_at__lt=F("ends_at")), name="maintenance_window"
            ),
            models.CheckConstraint(
                condition=Q(ended_at=None, outcome="") | (Q(ended_at__isnull=False) & ~Q(outcome="")),
                name="maintenance_ended_with_outcome",
            ),
        ]

    def __str__(self) -> str:
        return f"maintenance #{self.pk}"

    @property
    def is_stuck(self) -> bool:
        return any(node.is_stuck for node in self.nodes.all())

    @property
    def state(self) -> str:
        """The step of the node that is least far."""
        found = {node.step for node in self.nodes.all()}
        return str(next((step.label for step in Step if step in found), Step.DONE.label))

    @property
    def is_by_hand(self) -> bool:
        return not self.mig_config and not self.plugin_config


class MaintenanceNode(models.Model):
    """`before`: what the node was like before its first change, {} until then: `labels` that may be set, `devices`
    offered, and from the drain on `cordoned`. `problem`: what the step waits for, as a sentence. `is_going_back`: its
    labels are set as before.
    """

    maintenance = models.ForeignKey(Maintenance, on_delete=models.CASCADE, related_name="nodes", db_index=False)
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=253)
    step = models.CharField(max_length=10, choices=Step.choices, default=Step.PLANNED)
    step_since = models.DateTimeField(db_default=Now())
    # The step whose state was written to the node: if the node differs later, somebody else changed it.
    written_step = models.CharField(max_length=10, choices=Step.choices, blank=True, default="", db_default="")
    before = models.JSONField(default=dict, db_default={}, blank=True)
    is_going_back = models.BooleanField(default=False, db_default=False)
    problem = models.CharField(max_length=300, blank=True, default="", db_default="")
    stuck_told_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint("maintenance", "name", name="maintenance_node_once"),
            models.UniqueConstraint(
                "cluster", "name", condition=~Q(step=Step.DONE), name="one_maintenance_of_a_node_at_a_time"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_stuck(self) -> bool:
        return self.stuck_told_at is not None


class MaintenanceNotice(models.Model):
    """A run was told: each run once in each stage."""

    class Stage(models.TextChoices):
        ANNOUNCED = "announced", "announced"
        REMINDED = "reminded", "reminded"
        MOVED = "moved", "moved off the nodes"
        CANCELED = "canceled", "canceled"

    maintenance = models.ForeignKey(Maintenance, on_delete=models.CASCADE, related_name="notices", db_index=False)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="+")
    stage = models.CharField(max_length=9, choices=Stage)
    told_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint("maintenance", "run", "stage", name="maintenance_told_once")]

    def __str__(self) -> str:
        return f"{self.stage} {self.run_id}"
