"""Reads what was measured of the interconnect of nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from django.db.models import QuerySet

from catalog.interconnect.comparison import ClassInterconnect, compare
from catalog.interconnect.node_state import state_of
from catalog.interconnect.types import AllReduce, Links, Measurement, NodeState
from catalog.models import GpuClass, NodeMeasurement
from cluster.models import Cluster
from cluster.reads import queries as mirror
from cluster.reads.observed import Node

Measured = Mapping[str, tuple[Measurement, ...]]


def latest(cluster: Cluster, nodes: Collection[str] | None = None) -> Measured:
    """By node, the last of each kind that is not withdrawn; only for `nodes`, if they are given. One query."""
    rows = measurements(cluster).filter(withdrawn_at=None)
    if nodes is not None:
        rows = rows.filter(node__in=nodes)
    found: dict[str, tuple[Measurement, ...]] = {}
    for row in rows.order_by("node", "-kind", "-measured_on", "-id").distinct("node", "kind"):
        found[row.node] = (*found.get(row.node, ()), measurement_of(row))
    return found


def class_interconnects(cluster: Cluster, classes: Iterable[GpuClass]) -> dict[int, ClassInterconnect] | None:
    """By id of each class of whole GPUs that one pod has to itself; empty if nothing has been measured. None: the nodes
    are unknown. One query while nothing has been measured, else three.
    """
    measured = latest(cluster)
    if not measured:
        return {}
    if not mirror.is_known(cluster.pk, "Node"):
        return None
    nodes = mirror.nodes(cluster.pk)
    return {one.pk: compare(_states(one, nodes), measured) for one in classes if _is_whole(one)}


def measured_sentences(cluster: Cluster, classes: Sequence[GpuClass]) -> dict[int, list[str] | None]:
    """By id of each class; empty if nothing has been measured that counts, None: its nodes are unknown. Queries as in
    `class_interconnects`.
    """
    found = class_interconnects(cluster, classes)
    if found is None:
        return {one.pk: None if _is_whole(one) else [] for one in classes}
    return {one.pk: found[one.pk].sentences if one.pk in found else [] for one in classes}


def _is_whole(one: GpuClass) -> bool:
    """Links between slices or shares are not those between GPUs."""
    has_devices = one.interface in (GpuClass.Interface.DEVICE_PLUGIN, GpuClass.Interface.DRA)
    return has_devices and one.partition == "none" and one.sharing == GpuClass.Sharing.NONE and bool(one.node_labels)


def _states(one: GpuClass, nodes: Iterable[Node]) -> dict[str, NodeState]:
    """Nodes with all GPUs in MIG mode also have the labels of whole GPUs, so the capacity decides."""
    is_plugin = one.interface == GpuClass.Interface.DEVICE_PLUGIN
    return {
        node.name: state_of(node.labels, node.uid)
        for node in nodes
        if one.node_labels.items() <= node.labels.items() and (not is_plugin or node.capacity.get(one.resource, 0))
    }


def measurements(cluster: Cluster, node: str = "") -> QuerySet[NodeMeasurement]:
    found = NodeMeasurement.objects.filter(cluster=cluster).select_related("by")
    return found.filter(node=node) if node else found


def measurement_of(row: NodeMeasurement) -> Measurement:
    links = None if row.links is None else Links(tuple(tuple(one) for one in row.links))
    reduced = None
    if row.bus_gb_s is not None and row.message_bytes is not None:
        reduced = AllReduce(row.gpus, row.message_bytes, row.bus_gb_s)
    state = NodeState(row.node_uid, row.product, row.driver)
    return Measurement(row.node, row.measured_on, links, reduced, row.by.name, state)
