"""Units on GPUs with faults: what they add to the units that a node itself reports as unhealthy.

Kubernetes does not say which devices it counts as unhealthy, and those with faults may be among them. So of a node the
larger of both numbers counts, never their sum.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from catalog.models import GpuClass
from cluster.models import Cluster, MirrorNode
from cluster.reads import queries as mirror
from cluster.reads.observed import Node
from usage.faults.queries import open_faults, unhealthy_devices

WHOLE, SHARED, SLICE = "nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-"


def units_on_gpus(node: Node, resource: str, gpus: int) -> int | None:
    """Units of a resource on so many of the node's GPUs. None: unknown, because an exporter does not say which slices
    are on a GPU, nor which GPUs of a node with several resources are shared.
    """
    if not gpus:
        return 0
    offered = {name for name, units in node.capacity.items() if units}
    if resource not in (WHOLE, SHARED):
        return None if resource.startswith(SLICE) else 0
    if "-MIG-" in node.labels.get("nvidia.com/gpu.product", "") or len(offered & {WHOLE, SHARED}) > 1:
        return None
    if any(name.startswith(SLICE) for name in offered):
        return None
    replicas = node.labels.get("nvidia.com/gpu.replicas", "")
    return min(node.capacity.get(resource, 0), gpus * (int(replicas) if replicas.isdigit() and int(replicas) else 1))


def unhealthy_units(capacity: int, allocatable: int, faulty: int | None) -> int:
    return max(0, capacity - allocatable, faulty or 0)


def added_by_faults(cluster: Cluster, classes: Collection[GpuClass]) -> Mapping[int, int]:
    """By class id: units of ready nodes that are unhealthy only by faults. One query, two if there are faults; none if
    no class has units that can be counted.
    """
    counted = [
        one for one in classes if one.interface == GpuClass.Interface.DEVICE_PLUGIN and one.resource in (WHOLE, SHARED)
    ]
    added = {one.pk: 0 for one in counted}
    found = open_faults(cluster) if counted else {}
    gpus = {name: count for name, faults in found.items() if (count := unhealthy_devices(faults))}
    rows = MirrorNode.objects.filter(cluster_id=cluster.pk, name__in=gpus, ready=True) if gpus else ()
    for node in map(mirror.node_of, rows):
        for one in counted:
            if one.node_labels.items() <= node.labels.items():
                capacity, allocatable = node.capacity.get(one.resource, 0), node.allocatable.get(one.resource, 0)
                faulty = units_on_gpus(node, one.resource, gpus[node.name])
                added[one.pk] += unhealthy_units(capacity, allocatable, faulty) - max(0, capacity - allocatable)
    return added
