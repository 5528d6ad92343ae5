"""The pods of the GPU software stack, read from the mirror."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet
from django.utils.dateparse import parse_datetime

from cluster.models import Cluster, MirrorPod
from cluster.reads.observed import Node
from desk.nodes.gpu_stack import NodeStack, StackPod, is_nvidia, node_stack
from tenants.models import Namespace


def stack_of_node(cluster: Cluster, node: Node, *, has_devices: bool) -> NodeStack | None:
    """None: the node has no NVIDIA GPUs, as far as it says. Two queries."""
    if not is_nvidia(node.labels, node.capacity):
        return None
    rows = _rows(cluster)
    pods = rows.filter(node=node.name).order_by("name").values_list("namespace", "name", "record__stack")
    return node_stack(
        node.name,
        node.labels,
        [_pod(namespace, name, stack) for namespace, name, stack in pods],
        in_cluster=set(rows.order_by().values_list("record__stack__part", flat=True).distinct()),
        has_devices=has_devices,
        label_times={name: writer.at for name, writer in node.writers.items()},
    )


def _rows(cluster: Cluster) -> QuerySet[MirrorPod]:
    """Pods in namespaces of teams are left out, whatever their labels say."""
    rows = MirrorPod.objects.filter(cluster_id=cluster.pk, record__has_key="stack").exclude(node="")
    return rows.exclude(namespace__in=Namespace.objects.filter(cluster=cluster).values("name"))


def _pod(namespace: str, name: str, stack: Mapping[str, Any]) -> StackPod:
    since = parse_datetime(stack["since"]) if stack["since"] else None
    return StackPod(
        part=stack["part"],
        namespace=namespace,
        name=name,
        ready=stack["ready"],
        since=since,
        restarts=stack["restarts"],
        container=stack["container"],
        reason=stack["reason"],
    )
