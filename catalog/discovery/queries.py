"""Nodes and device slices of the mirror as input of discovery."""

from __future__ import annotations

from collections.abc import Collection

from catalog.discovery import inventory
from catalog.discovery import types as discovery_types
from cluster.models import Cluster
from cluster.reads import observed
from cluster.reads import queries as mirror


def discover_cluster(cluster: Cluster) -> discovery_types.Discovery | None:
    """Returns classes for the current hardware of the cluster, or None while the mirror is unknown."""
    if not mirror.is_known(cluster.pk, "Node", "ResourceSlice"):
        return None
    gpu_taints = cluster.site_profile.gpu_taints
    slices = mirror.objects(cluster.pk, kind="ResourceSlice")
    return inventory.discover(
        [discovery_node(node, gpu_taints) for node in mirror.nodes(cluster.pk)],
        [device for one in slices for device in discovery_devices(one)],
    )


def discovery_node(node: observed.Node, gpu_taints: Collection[str] = ()) -> discovery_types.NodeFacts:
    """`gpu_taints`: keys that the site profile names."""
    plain = {"cpu": 1000, "memory": 1024**3}
    return discovery_types.NodeFacts(
        name=node.name,
        labels=node.labels,
        taints=tuple({"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in node.taints),
        allocatable={name: amount / plain.get(name, 1) for name, amount in node.allocatable.items()},
        gpu_taints=frozenset(gpu_taints),
    )


def discovery_devices(one: observed.GenericObject) -> list[discovery_types.Device]:
    return [
        discovery_types.Device(
            driver=one.record["driver"],
            node=one.record["node"],
            attributes={name: str(value) for name, value in device["attributes"].items()},
            memory_mib=_mebibytes(device["capacity"].get("memory")),
        )
        for device in one.record["devices"]
    ]


def _mebibytes(amount: int | None) -> int | None:
    return None if amount is None else amount // 1024**2
