"""Computes the capacity of a class from the API server's raw objects, without the portal's own code."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from catalog.classes.capacity.types import Capacity
from catalog.models import GpuClass

Raw = dict[str, Any]
# Vendors whose nodes are not for work without a GPU.
VENDORS = ("nvidia.com", "amd.com", "gpu.intel.com", "habana.ai")
# Taints that Kubernetes sets on a cordoned or not ready node say nothing about whom the node is for.
STATE = "node.kubernetes.io/"
HARD = ("NoSchedule", "NoExecute")


@dataclass(frozen=True)
class Figures:
    """Figures of this module or of the portal, in one shape so that they can be compared."""

    allocatable: int | None
    used: int | None
    free: int | None
    most_on_one_node: int | None
    largest_node: int | None
    unhealthy: int | None
    cordoned: int | None
    by_node: Mapping[str, tuple[int, int]]


@dataclass(frozen=True)
class Lists:
    """The API server's lists at one moment."""

    nodes: list[Raw]
    pods: list[Raw]
    slices: list[Raw]
    claims: list[Raw]

    def versions(self) -> set[tuple[str, str]]:
        objects = (*self.nodes, *self.pods, *self.slices, *self.claims)
        return {(one["metadata"]["uid"], one["metadata"]["resourceVersion"]) for one in objects}


def counted(one: GpuClass, lists: Lists, *, driver: str, product: str) -> Figures:
    """`driver`, `product` ("": any): the devices of ResourceSlices that a DeviceClass selects."""
    allocatable = used = free = most = largest = unhealthy = cordoned = 0
    by_node: dict[str, tuple[int, int]] = {}
    for node in lists.nodes:
        if not _is_for(node, one):
            continue
        if one.interface == GpuClass.Interface.DRA:
            has, offers, busy, left = _devices(node, lists, driver, product)
        else:
            has, offers, busy, left = _amounts(node, lists, one)
        used += busy
        conditions = node["status"].get("conditions", [])
        if not any(each["type"] == "Ready" and each["status"] == "True" for each in conditions):
            continue
        allocatable, largest = allocatable + offers, max(largest, offers)
        unhealthy += 0 if one.interface == GpuClass.Interface.NONE else has - offers
        if node["spec"].get("unschedulable") or _keeps_out(node, one):
            cordoned += offers
            continue
        free, most = free + left, max(most, left)
        by_node[node["metadata"]["name"]] = (offers, busy)
    by_node = _that_says_something(by_node)
    return Figures(allocatable, used, free, most, largest, unhealthy, cordoned, by_node)


def _is_for(node: Raw, one: GpuClass) -> bool:
    if one.interface == GpuClass.Interface.NONE:
        has_device = any(name.split("/")[0] in VENDORS for name in node["status"].get("allocatable", {}))
        return not has_device and not is_kept_off(node)
    labels = node["metadata"].get("labels", {})
    return all(labels.get(key) == value for key, value in one.node_labels.items())


def _keeps_out(node: Raw, one: GpuClass) -> bool:
    """Whether this class's pods may not go to the node. The tested classes tolerate taints by key, or none."""
    keys = {each["key"] for each in one.tolerations}
    hard = [taint["key"] for taint in node["spec"].get("taints", []) if taint["effect"] in HARD]
    return any(key not in keys and not key.startswith(STATE) for key in hard)


def is_kept_off(node: Raw) -> bool:
    """Whether only pods with a toleration may go to the node, if it were ready and not cordoned."""
    taints = node["spec"].get("taints", [])
    return any(taint["effect"] in HARD and not taint["key"].startswith(STATE) for taint in taints)


def _amounts(node: Raw, lists: Lists, one: GpuClass) -> tuple[int, int, int, int]:
    """(has, offers, in use, free) in units of the resource that the kubelet reports."""
    is_cores = one.interface == GpuClass.Interface.NONE
    resource, unit = ("cpu", one.cpu_per_unit) if is_cores else (one.resource, 1)
    has, offers = (_number(node["status"].get(key, {}).get(resource, 0)) for key in ("capacity", "allocatable"))
    of_node = [pod for pod in lists.pods if pod["spec"].get("nodeName") == node["metadata"]["name"]]
    busy = sum((_asked(pod, resource) for pod in of_node), Decimal())
    units_has, units_offers, units_busy = int(has / unit), int(offers / unit), math.ceil(busy / unit)
    return units_has, units_offers, units_busy, max(0, units_offers - units_busy)


def _asked(pod: Raw, resource: str) -> Decimal:
    """What the scheduler reserves: the sum of the containers, or one init container that needs more."""
    if pod["status"]["phase"] in ("Succeeded", "Failed"):
        return Decimal()

    def of(container: Raw) -> Decimal:
        return _number(container.get("resources", {}).get("requests", {}).get(resource, 0))

    first = max((of(each) for each in pod["spec"].get("initContainers", [])), default=Decimal())
    return max(first, sum((of(each) for each in pod["spec"]["containers"]), Decimal()))


def _number(quantity: str | int) -> Decimal:
    text = str(quantity)
    return Decimal(text[:-1]) / 1000 if text.endswith("m") else Decimal(text)


def _devices(node: Raw, lists: Lists, driver: str, product: str) -> tuple[int, int, int, int]:
    """(has, offers, in use, free), device by device. An unhealthy device in use counts as offered until released."""
    held = {
        (each["driver"], each["pool"], each["device"])
        for claim in lists.claims
        for each in claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
        if not each.get("adminAccess")
    }
    mine = [each["spec"] for each in lists.slices if each["spec"]["driver"] == driver]
    newest: dict[str, int] = {}
    for spec in mine:
        newest[spec["pool"]["name"]] = max(newest.get(spec["pool"]["name"], 0), spec["pool"]["generation"])
    has = offers = busy = left = 0
    for spec in mine:
        pool = spec["pool"]
        if spec.get("nodeName") != node["metadata"]["name"] or pool["generation"] < newest[pool["name"]]:
            continue
        for device in spec.get("devices", []):
            if product and device["attributes"]["productName"]["string"] != product:
                continue
            is_held = (driver, pool["name"], device["name"]) in held
            is_well = not any(taint["effect"] in HARD for taint in device.get("taints", []))
            has, offers, busy = has + 1, offers + (is_well or is_held), busy + is_held
            left += is_well and not is_held
    return has, offers, busy, left


def told(found: Capacity) -> Figures:
    return Figures(
        found.allocatable,
        found.used,
        found.free,
        found.most_on_one_node,
        found.largest_node,
        found.unhealthy,
        found.cordoned,
        _that_says_something({node.name: (node.allocatable, node.used) for node in found.nodes}),
    )


def _that_says_something(by_node: Mapping[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    return {name: both for name, both in by_node.items() if both != (0, 0)}
