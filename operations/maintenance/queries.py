"""Maintenances as pages read them."""

from __future__ import annotations

from operations.maintenance.steps import Step
from operations.models import MaintenanceNode


def open_maintenance(cluster_id: int, node: str) -> int | None:
    """The key of the maintenance that a node is in or planned for. One query."""
    rows = MaintenanceNode.objects.filter(cluster_id=cluster_id, name=node).exclude(step=Step.DONE)
    return rows.values_list("maintenance", flat=True).first()
