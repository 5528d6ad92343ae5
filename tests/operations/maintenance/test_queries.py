"""Which maintenance a node is in, and which runs its nodes wait for."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster
from operations.maintenance.queries import moving_runs, open_maintenance
from operations.models import Maintenance, MaintenanceNode, MaintenanceNotice
from tenants.models import Namespace
from tests.support.rows import running
from workloads.models import Run
from workloads.runs.draining.queries import TOGETHER

pytestmark = pytest.mark.django_db


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


def test_nodes_do_not_wait_for_long_for_a_run_that_stays_on_another_node(
    cluster: Cluster, olga: User, namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    now = timezone.now()
    row = Maintenance.objects.create(
        cluster=cluster, kind="hardware", reason="A fan.", holds_from=now, starts_at=now,
        ends_at=now + timedelta(hours=1), created_by=olga,
    )  # fmt: skip
    run = running.workload(namespace_a, a100, name="mine", by=alice).runs.get()
    MaintenanceNotice.objects.create(maintenance=row, run=run, stage="moved")
    assert moving_runs(row) == []
    Run.objects.update(drain_requested_at=now)
    assert moving_runs(row) == ["team-a/mine"]
    Run.objects.update(drain_requested_at=now - TOGETHER)
    assert moving_runs(row) == [], "its own node still names it"
    Run.objects.update(drained_at=now)
    assert moving_runs(row) == ["team-a/mine"], "it has left, and is not queued again yet"
