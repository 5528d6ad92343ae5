"""Nodes and device slices of the mirror as input of discovery."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from catalog.discovery import inventory, vendors
from catalog.discovery import types as discovery_types
from catalog.models import DeviceTrial
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
        counted_device_classes(cluster),
    )


def counted_device_classes(cluster: Cluster) -> dict[str, str]:
    """Device class → the name under which Kueue counts it, as it was tried; NOT_COUNTED if it counts it under none.
    What is not known is left out. One query.
    """
    return counted_in(DeviceTrial.objects.filter(cluster=cluster, selector=""))


def counted_in(trials: Iterable[DeviceTrial]) -> dict[str, str]:
    known = (DeviceTrial.Verdict.COUNTED, DeviceTrial.Verdict.NOT_COUNTED)
    return {one.device_class: one.resource for one in trials if not one.selector and one.verdict in known}


def seen_device_classes(cluster: Cluster) -> set[str]:
    """The device classes that the drivers' devices belong to. One query."""
    slices = mirror.objects(cluster.pk, kind="ResourceSlice")
    return {vendors.device_class_of(device) for one in slices for device in discovery_devices(one)}


def device_capacities(cluster: Cluster) -> dict[str, set[str]]:
    """Driver → the names of its devices' capacities that are not names of attributes. One query."""
    capacities: dict[str, set[str]] = {}
    attributes: dict[str, set[str]] = {}
    for one in mirror.objects(cluster.pk, kind="ResourceSlice"):
        for device in one.record["devices"]:
            capacities.setdefault(one.record["driver"], set()).update(device["capacity"])
            attributes.setdefault(one.record["driver"], set()).update(device["attributes"])
    return {driver: names - attributes[driver] for driver, names in capacities.items()}


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
