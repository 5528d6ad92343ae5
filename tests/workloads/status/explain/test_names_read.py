"""What explanations name is read from the mirror: volumes, taints, and what keeps a deleted namespace."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster, MirrorJob, MirrorNode, MirrorObject, MirrorPod
from tenants.models import Namespace
from tests.support.rows import make, mirrored, running
from tests.support.rows.interruptions import condition
from tests.support.rows.waiting_runs import waits
from workloads.core import workload_sql
from workloads.models import Run, Workload
from workloads.status import queries
from workloads.status.workload_row import WorkloadRow

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def hardware(cluster: Cluster, a100: GpuClass) -> None:
    mirrored.hardware_seen(cluster)


def shown() -> WorkloadRow:
    (row,) = queries.workload_rows(workload_sql.with_related(Workload.objects.all()))
    return row


def an_object(of: Namespace, kind: str, name: str, record: dict[str, Any], **more: Any) -> MirrorObject:
    return MirrorObject.objects.create(
        cluster_id=of.cluster_id, kind=kind, name=name, uid=f"{kind}-{name}", resource_version=1,
        created_at=timezone.now(), record=record, **more,
    )  # fmt: skip


def test_the_volume_of_a_pod_that_waits_for_it(
    namespace_a: Namespace, a100: GpuClass, alice: User, cluster: Cluster
) -> None:
    found = running.workload(namespace_a, a100, by=alice)
    running.make_ready(found)
    run = Run.objects.get()
    Run.objects.update(spec={**run.spec, "claim": "data"}, started_at=None, ready_at=None)
    message = "0/2 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity."
    pod = MirrorPod.objects.get()
    pod.node, pod.phase = "", "Pending"
    unplaced = condition("PodScheduled", "False", reason="Unschedulable", message=message)
    pod.record = {**pod.record, "conditions": [unplaced], "containers": []}
    pod.save()
    node = MirrorNode.objects.first()
    assert node is not None
    node.record = {**node.record, "labels": {**node.record["labels"], "topology.kubernetes.io/zone": "eu-1"}}
    node.save()
    record = {"phase": "Bound", "storage_class": "fast", "node": node.name, "conditions": []}
    an_object(namespace_a, "PersistentVolumeClaim", "data", record, namespace=namespace_a.name)
    row = shown()
    assert row.status.reason == "volume_elsewhere"
    assert f"The volume data, of the storage class fast, was created for node {node.name} in the zone eu-1." in (
        row.status.sentence
    )
    # While it is provisioned there, the scheduler says nothing of the pod.
    MirrorObject.objects.update(record={**record, "phase": "Pending"})
    gated = condition("PodScheduled", "False", reason="SchedulingGated")
    MirrorPod.objects.update(record={**pod.record, "conditions": [gated]})
    assert shown().status.sentence == f"Its volume data is being provisioned on node {node.name}."


def test_the_taint_of_the_nodes_of_the_class(namespace_a: Namespace, a100: GpuClass, alice: User, team_a: Any) -> None:
    make.grant(team_a, a100, units=4)
    found = waits(namespace_a, a100, alice, text="no topology domains at level: kubernetes.io/hostname")
    run = found.runs.get()
    spec = {**run.spec, "interface": "device-plugin", "node_labels": dict(a100.node_labels), "tolerations": []}
    found.runs.update(spec={**spec, "resource": a100.resource, "cpu": 1, "memory_gib": 1})
    taint = {"key": "dedicated", "value": "team-b", "effect": "NoSchedule"}
    for node in MirrorNode.objects.all():
        node.record = {**node.record, "taints": [taint]}
        node.save()
    assert "(taint dedicated=team-b:NoSchedule)" in shown().status.sentence


def test_the_finalizer_that_keeps_a_deleted_namespace(
    namespace_a: Namespace, a100: GpuClass, alice: User, cluster: Cluster
) -> None:
    running.workload(namespace_a, a100, by=alice)
    running.known(cluster.pk)
    MirrorJob.objects.all().delete()
    text = "jobs.batch is forbidden: unable to create new content in namespace team-a because it is being terminated"
    Workload.objects.update(error_code="cluster_unavailable", error_text=text)
    held = "Some content in the namespace has finalizers remaining: example.org/stays in 1 resource instances"
    record = {
        "phase": "Terminating", "labels": {},
        "conditions": [condition("NamespaceFinalizersRemaining", "True", message=held)],
    }  # fmt: skip
    MirrorObject.objects.filter(kind="Namespace", name=namespace_a.name).delete()
    an_object(namespace_a, "Namespace", namespace_a.name, record, deleting_since=timezone.now())
    row = shown()
    assert row.status.reason == "namespace_going"
    assert "Finalizer example.org/stays blocks the deletion of 1 object." in row.status.sentence
    assert any("example.org/stays" in step.note + step.problem for step in row.steps)
