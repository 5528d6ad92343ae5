"""One pass over several nodes: whose runs a node waits for, and how often that is read."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import User
from catalog.models import GpuClass
from cluster.client.types import ApiObject
from cluster.models import Cluster, MirrorPod
from operations.maintenance.reconcile import reconcile_maintenance
from operations.models import Maintenance, MaintenanceNode, MaintenanceNotice
from portal.core.due import Deadline
from tenants.models import Namespace
from tests.support.rows import mirrored, running
from workloads.models import Run

pytestmark = pytest.mark.django_db
NODES = ("a100-1", "a100-2", "a100-3")


class Nodes:
    """The worker's client, for nodes that are ready and as they were left."""

    def get(self, kind: str, *, name: str) -> ApiObject:
        status = {"conditions": [{"type": "Ready", "status": "True"}]}
        return ApiObject({"metadata": {"name": name, "resourceVersion": "1"}, "spec": {}, "status": status})

    def merge(self, kind: str, *, name: str, body: dict[str, Any]) -> ApiObject:
        return self.get(kind, name=name)


@pytest.fixture
def row(cluster: Cluster, olga: User) -> Maintenance:
    """Its nodes are drained since an hour."""
    now = timezone.now()
    found = Maintenance.objects.create(
        cluster=cluster, kind="hardware", reason="A fan.", holds_from=now - timedelta(hours=2),
        starts_at=now - timedelta(hours=1), ends_at=now + timedelta(hours=1), created_by=olga,
    )  # fmt: skip
    for name in NODES:
        MaintenanceNode.objects.create(
            maintenance=found, cluster=cluster, name=name, step="draining", step_since=found.starts_at
        )
    return found


def passed(row: Maintenance) -> int:
    """One pass. Returns how often the runs that are being moved were read."""
    kube: Any = Nodes()
    with CaptureQueriesContext(
        connection,
    ) as queries:
        reconcile_maintenance(row, Deadline(), kube=kube)
    table = MaintenanceNotice._meta.db_table
    return sum(f'FROM "{table}"' in one["sql"] and "drain_requested_at" in one["sql"] for one in queries)


def problems(row: Maintenance) -> list[tuple[str, str]]:
    return [(node.step, node.problem) for node in row.nodes.all()]


def test_the_runs_that_are_moved_are_read_once_for_all_nodes(
    row: Maintenance, cluster: Cluster, namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    mirrored.seen(cluster, Pod=[])
    run = running.workload(namespace_a, a100, name="mine", by=alice).runs.get()
    MaintenanceNotice.objects.create(maintenance=row, run=run, stage="moved")
    Run.objects.update(drain_requested_at=timezone.now())
    assert passed(row) == 1
    waits = ("draining", "1 workload (team-a/mine) is being queued again.")
    assert problems(row) == [waits, waits, waits]


def test_a_node_also_waits_for_runs_that_another_node_begins_to_move_in_the_same_pass(
    row: Maintenance, cluster: Cluster, namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    mirrored.seen(cluster, Pod=[])
    found = running.workload(namespace_a, a100, name="mine", by=alice)
    running.make_ready(found)
    running.pod_of(found, uid="mine-pod")
    MirrorPod.objects.filter(owner=f"workloads.workload.{found.pk}").update(node="a100-2")
    passed(row)
    assert Run.objects.get().drain_requested_at is not None
    assert problems(row)[1:] == [
        ("draining", "1 workload (team-a/mine) is still on the node."),
        ("draining", "1 workload (team-a/mine) is being queued again."),
    ]
