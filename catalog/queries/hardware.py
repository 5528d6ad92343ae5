"""What discovery is given: nodes and device slices of the mirror, as plain values."""

from __future__ import annotations

from catalog import discovery
from cluster import observed
from cluster import queries as mirror
from cluster.models import Cluster


def discover(cluster: Cluster) -> discovery.Discovery | None:
    """Classes for what is in the cluster now, or None while the mirror is unknown."""
    if not mirror.is_known(cluster.pk, "Node", "ResourceSlice"):
        return None
    slices = mirror.objects(cluster.pk, kind="ResourceSlice")
    return discovery.discover(
        [_discovery_node(node) for node in mirror.nodes(cluster.pk)],
        [device for one in slices for device in _discovery_devices(one)],
    )


def _discovery_node(node: observed.Node) -> discovery.Node:
    plain = {"cpu": 1000, "memory": 1024**3}
    return discovery.Node(
        name=node.name,
        labels=node.labels,
        taints=tuple({"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in node.taints),
        allocatable={name: amount / plain.get(name, 1) for name, amount in node.allocatable.items()},
    )


def _discovery_devices(one: observed.Object) -> list[discovery.Device]:
    return [
        discovery.Device(
            driver=one.record["driver"],
            node=one.record["node"],
            attributes={name: str(value) for name, value in device["attributes"].items()},
            memory_mib=_mebibytes(device["capacity"].get("memory")),
        )
        for device in one.record["devices"]
    ]


def _mebibytes(amount: int | None) -> int | None:
    return None if amount is None else amount // 1024**2
