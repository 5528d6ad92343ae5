"""Maintenances as pages and their worker read them."""

from __future__ import annotations

from operations.maintenance.steps import Step
from operations.models import Maintenance, MaintenanceNode, MaintenanceNotice


def open_maintenance(cluster_id: int, node: str) -> int | None:
    """The key of the maintenance that a node is in or planned for. One query."""
    rows = MaintenanceNode.objects.filter(cluster_id=cluster_id, name=node).exclude(step=Step.DONE)
    return rows.values_list("maintenance", flat=True).first()


def moving_runs(row: Maintenance) -> list[str]:
    """Names of runs that were moved and are not in the queue again yet: who was queued later must not come first."""
    moved = MaintenanceNotice.Stage.MOVED
    told = row.notices.filter(stage=moved, run__ended_at=None, run__drain_requested_at__isnull=False)
    found = told.values_list("run__workload__tenant__slug", "run__workload__name").order_by("pk")
    return [f"{tenant}/{name}" for tenant, name in found]
