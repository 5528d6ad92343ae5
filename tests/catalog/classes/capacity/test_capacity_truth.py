"""Capacity where a simple sum is wrong: state taints, monitors, stale slices, broken devices in use."""

from __future__ import annotations

from typing import Any

import pytest

from catalog.classes.capacity import queries
from catalog.classes.capacity.types import Capacity
from catalog.models import GpuClass
from cluster.models import Cluster
from tests.support.rows import make, mirrored

Raw = dict[str, Any]
DRIVER = "gpu.example.com"


@pytest.fixture
def devices(cluster: Cluster) -> GpuClass:
    return make.gpu_class(
        cluster,
        slug="device",
        interface="dra",
        resource="example.com/device",
        device_class=DRIVER,
        device_selector=f'device.driver == "{DRIVER}"',
        node_labels={},
    )


def node(name: str, *, taints: tuple[str, ...] = (), is_ready: bool = True, is_cordoned: bool = False) -> Raw:
    amounts = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    return mirrored.with_metadata(
        {
            "metadata": {"name": name},
            "spec": {
                "taints": [{"key": key, "effect": "NoSchedule"} for key in taints],
                "unschedulable": is_cordoned,
            },
            "status": {
                "capacity": amounts,
                "allocatable": amounts,
                "conditions": [{"type": "Ready", "status": str(is_ready)}],
            },
        }
    )


def device(name: str, *, is_broken: bool = False) -> Raw:
    taints = [{"key": "example.com/broken", "effect": "NoSchedule"}] if is_broken else []
    return {"name": name, "attributes": {"productName": {"string": "big"}}, "taints": taints}


def slice_of(node_name: str, *devices: Raw, name: str = "one", generation: int = 1) -> Raw:
    pool = {"name": node_name, "generation": generation, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": node_name, "pool": pool, "devices": list(devices)}
    return mirrored.with_metadata({"metadata": {"name": name}, "spec": spec})


def claim(*names: str, node_name: str = "node-1", **more: Any) -> Raw:
    results = [{"request": "r", "driver": DRIVER, "pool": node_name, "device": name, **more} for name in names]
    status = {"allocation": {"devices": {"results": results}}}
    return mirrored.with_metadata({"metadata": {"name": "claim", "namespace": "team-a"}, "status": status})


def capacity(gpu_class: GpuClass) -> Capacity:
    return queries.capacities(gpu_class.cluster, [gpu_class])[gpu_class.pk]


def test_cores_of_a_cordoned_node_are_told_apart_although_kubernetes_taints_it(cluster: Cluster) -> None:
    cores = make.gpu_class(cluster, slug="cpu", interface="none", resource="", vendor="", cpu_per_unit=4)
    nodes = [
        node("open"),
        node("cordoned", taints=("node.kubernetes.io/unschedulable",), is_cordoned=True),
        node("starting", taints=("node.kubernetes.io/not-ready",), is_ready=False),
        node("kept", taints=("example.com/own",)),
    ]
    mirrored.seen(cluster, Node=nodes)
    found = capacity(cores)
    assert (found.allocatable, found.cordoned, found.free) == (4, 2, 2)


def test_a_node_in_repair_takes_no_pods_of_the_class(cluster: Cluster) -> None:
    whole = make.gpu_class(cluster, slug="whole")
    cards = {"nvidia.com/gpu": "4"}
    seen = []
    for name, taints in (("well", ("nvidia.com/gpu",)), ("repair", ("nvidia.com/gpu", "example.com/repair"))):
        raw = node(name, taints=taints)
        raw["metadata"]["labels"] = dict(whole.node_labels)
        raw["status"] |= {"capacity": cards, "allocatable": cards}
        seen.append(raw)
    mirrored.seen(cluster, Node=seen, Pod=[])
    found = capacity(whole)
    assert (found.allocatable, found.free, found.cordoned, found.most_on_one_node) == (8, 4, 4, 4)
    assert [one.name for one in queries.capacities(cluster, [whole], with_nodes=True)[whole.pk].nodes] == ["well"]


@pytest.mark.parametrize(("is_monitor", "used", "free"), [(True, 0, 2), (False, 2, 0)])
def test_a_monitor_that_looks_at_all_devices_holds_none(
    devices: GpuClass, is_monitor: bool, used: int, free: int
) -> None:
    mirrored.seen(
        devices.cluster,
        Node=[node("node-1")],
        ResourceSlice=[slice_of("node-1", device("d0"), device("d1"))],
        ResourceClaim=[claim("d0", "d1", adminAccess=is_monitor)],
    )
    assert (capacity(devices).used, capacity(devices).free) == (used, free)


def test_only_the_newest_generation_of_a_pool_counts(devices: GpuClass) -> None:
    old = slice_of("node-1", device("d0"), device("d1"), device("d2"), name="old")
    new = slice_of("node-1", device("d0"), name="new", generation=2)
    mirrored.seen(devices.cluster, Node=[node("node-1")], ResourceSlice=[old, new])
    assert (capacity(devices).allocatable, capacity(devices).free) == (1, 1)


def test_the_pool_of_another_node_has_generations_of_its_own(devices: GpuClass) -> None:
    first = slice_of("node-1", device("d0"), device("d1"), name="first")
    other = slice_of("node-2", device("d0"), name="other", generation=7)
    mirrored.seen(devices.cluster, Node=[node("node-1"), node("node-2")], ResourceSlice=[first, other])
    assert capacity(devices).allocatable == 3


def test_a_broken_device_in_use_takes_nothing_from_what_is_free(devices: GpuClass) -> None:
    seen = {
        "Node": [node("node-1")],
        "ResourceSlice": [slice_of("node-1", device("d0", is_broken=True), device("d1"), device("d2"))],
    }
    mirrored.seen(devices.cluster, **seen, ResourceClaim=[claim("d0")])
    assert (capacity(devices).used, capacity(devices).free, capacity(devices).unhealthy) == (1, 2, 0)
    mirrored.seen(devices.cluster, **seen, ResourceClaim=[])
    assert (capacity(devices).used, capacity(devices).free, capacity(devices).unhealthy) == (0, 2, 1)
