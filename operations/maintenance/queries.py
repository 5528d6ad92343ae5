"""Maintenances as pages and their worker read them."""

from __future__ import annotations

from django.db.models import Q
from django.utils import timezone

from operations.maintenance.steps import Step
from operations.models import Maintenance, MaintenanceNode, MaintenanceNotice
from workloads.runs.draining.queries import TOGETHER


def open_maintenance(cluster_id: int, node: str) -> int | None:
    """The key of the maintenance that a node is in or planned for. One query."""
    rows = MaintenanceNode.objects.filter(cluster_id=cluster_id, name=node).exclude(step=Step.DONE)
    return rows.values_list("maintenance", flat=True).first()


def moving_runs(row: Maintenance) -> list[str]:
    """Names of runs that were moved and are not in the queue again yet: who was queued later must not come first. A run
    that does not leave its node keeps only this node: others go on after a minute.
    """
    left = Q(run__drained_at__isnull=False) | Q(run__drain_requested_at__gt=timezone.now() - TOGETHER)
    told = row.notices.filter(left, stage=MaintenanceNotice.Stage.MOVED, run__ended_at=None)
    told = told.filter(run__drain_requested_at__isnull=False)
    found = told.values_list("run__workload__tenant__slug", "run__workload__name").order_by("pk")
    return [f"{tenant}/{name}" for tenant, name in found]
