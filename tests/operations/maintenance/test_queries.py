"""Which maintenance a node is in."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import User
from cluster.models import Cluster
from operations.maintenance.queries import open_maintenance
from operations.models import Maintenance, MaintenanceNode


@pytest.mark.django_db
def test_a_node_of_the_same_name_in_another_cluster_is_not_in_maintenance(cluster: Cluster, olga: User) -> None:
    now = timezone.now()
    row = Maintenance.objects.create(
        cluster=cluster, kind="hardware", reason="A fan.", holds_from=now, starts_at=now,
        ends_at=now + timedelta(hours=1), created_by=olga,
    )  # fmt: skip
    MaintenanceNode.objects.create(maintenance=row, cluster=cluster, name="gpu-1")
    assert open_maintenance(cluster.pk, "gpu-1") == row.pk
    assert open_maintenance(cluster.pk + 1, "gpu-1") is None
    assert open_maintenance(cluster.pk, "gpu-2") is None
    MaintenanceNode.objects.update(step="done")
    assert open_maintenance(cluster.pk, "gpu-1") is None
