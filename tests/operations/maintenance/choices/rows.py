"""A maintenance that is planned, and ready runs on its nodes, made only of rows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.utils import timezone

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster, MirrorPod
from operations.models import Maintenance, MaintenanceNode
from portal.core.due import owner_label
from tenants.models import Namespace
from tests.support.rows import running
from workloads.models import Run

NODE = "a100-1"
Plan = Callable[..., Maintenance]
Launch = Callable[..., Run]


def planned(cluster: Cluster, by: User, *nodes: str, step: str = "planned", **more: Any) -> Maintenance:
    now = timezone.now()
    window = {"holds_from": now, "starts_at": now + timedelta(hours=2), "ends_at": now + timedelta(hours=3)}
    values = {"cluster": cluster, "kind": "hardware", "reason": "A fan.", "created_by": by, **window, **more}
    row = Maintenance.objects.create(**values)
    for name in nodes or (NODE,):
        MaintenanceNode.objects.create(maintenance=row, cluster=cluster, name=name, step=step)
    return row


def ready_run(namespace: Namespace, gpu_class: GpuClass, by: User, name: str, *nodes: str) -> Run:
    """A notebook with a pod on each of these nodes."""
    found = running.workload(namespace, gpu_class, name=name, by=by)
    running.make_ready(found)
    for node in nodes[1:]:
        running.pod_of(found, uid=f"{name}-{node}")
    pods = MirrorPod.objects.filter(owner=owner_label(found)).order_by("pk")
    for pod, node in zip(pods, nodes or (NODE,), strict=True):
        MirrorPod.objects.filter(pk=pod.pk).update(node=node)
    return found.runs.get()
