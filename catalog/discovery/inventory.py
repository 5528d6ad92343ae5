"""Nodes and device slices → one proposed class per kind of capacity. Values in, values out.

A kind is product × partition × sharing × the resource name that counts it. Names alone are not enough: `nvidia.com/gpu`
may be a whole GPU, a slice, or a time-sliced one. Labels of GPU Feature Discovery and of AMD's and Intel's labellers
say which. Where they do not, the answer is a problem and no proposal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from catalog.discovery import dra_devices, vendors
from catalog.discovery.grouping import Sighting, merge_sightings
from catalog.discovery.naming import SLUG_LIMIT, class_title
from catalog.discovery.types import (
    ClassProposal,
    Device,
    Discovery,
    NodeFacts,
    UnlabelledCapacity,
    is_device,
    is_gpu_node,
    tolerations,
)
from cluster.manifests.names import dns_label
from cluster.manifests.node_removal.spot import spot_label

NOT_COUNTED = ""


def discover(
    nodes: Iterable[NodeFacts], devices: Iterable[Device] = (), counted: Mapping[str, str] = MappingProxyType({})
) -> Discovery:
    """Deterministic: the same hardware gives the same slugs, in any order.

    `counted`: device class → the name under which Kueue counts it, NOT_COUNTED, or not in it while that is unknown.
    """
    by_name = {node.name: node for node in nodes}
    by_node: dict[str, list[Device]] = {}
    for device in devices:
        by_node.setdefault(device.node, []).append(device)
    problems: set[str] = set()
    seen: list[Sighting] = []
    for node in by_name.values():
        here = by_node.get(node.name, [])
        seen += _plugged(node, problems)
        seen += _claimable(node, here, counted, problems)
        if not here and not is_gpu_node(node) and (cores := _cpu_only(node)) is not None:
            seen.append(Sighting(node, cores, cores.weight))
    proposals, confused = merge_sightings(seen)
    return Discovery(proposals, tuple(sorted(problems | confused)))


def _plugged(node: NodeFacts, problems: set[str]) -> Iterable[Sighting]:
    """What the node's device plugins advertise."""
    if product := vendors.invalid_product(node):
        problems.add(
            f"Node {node.name} reports {product}: MIG strategy single needs the same MIG layout on all its GPUs, "
            "and the layouts differ."
        )
        return
    for resource, units in sorted(node.allocatable.items()):
        if units < 1:
            continue
        try:
            found = vendors.of_resource(node, resource, int(units))
        except UnlabelledCapacity as sentence:
            problems.add(str(sentence))
            continue
        if found is not None:
            devices = sum(int(n) for name, n in node.allocatable.items() if is_device(name))
            yield Sighting(node, _sized(found, node, int(units), devices), vendors.weight_by_layout(node, found))


def _claimable(
    node: NodeFacts, devices: list[Device], counted: Mapping[str, str], problems: set[str]
) -> Iterable[Sighting]:
    """What a DRA driver publishes for the node."""
    groups: dict[Any, list[Device]] = {}
    for device in devices:
        kind = (device.attributes.get("productName", ""), device.attributes.get("profile", ""))
        groups.setdefault((vendors.device_class_of(device), *kind), []).append(device)
    for (device_class, *_kind), group in groups.items():
        resource = counted.get(device_class)
        if resource is None:
            problems.add(f"It is not known yet how Kueue counts device class {device_class} on node {node.name}.")
            continue
        if resource == NOT_COUNTED:
            problems.add(
                f"Device class {device_class} on node {node.name} is not counted by Kueue: add "
                f"{dra_devices.mapping_line(device_class)} to resources.deviceClassMappings of its configuration, with "
                "a name of your choice, and restart it."
            )
            continue
        found = vendors.of_devices(node, group, resource)
        weight = vendors.weight_by_layout(node, found, devices)
        yield Sighting(node, _sized(found, node, len(group), len(devices)), weight)


def _cpu_only(node: NodeFacts) -> ClassProposal | None:
    """One unit is one core with its share of the memory. A tainted node is reserved for other workloads."""
    if node.allocatable.get("cpu", 0) < 1 or any(taint.get("effect", "").startswith("No") for taint in node.taints):
        return None
    cores = int(node.allocatable["cpu"])
    return ClassProposal(
        slug="cpu",
        name="CPU only",
        vendor="",
        product="",
        resource="",
        node_labels={},
        interface="none",
        weight=Fraction(0),
        units_per_workload=max(1, cores // 2),
        memory_gib_per_unit=max(1, int(node.allocatable.get("memory", 1) * 0.9 // cores)),
        units=cores,
        nodes=(node.name,),
    )


def _sized(found: ClassProposal, node: NodeFacts, units: int, devices: int) -> ClassProposal:
    """Companion cpu and memory: the node divided by its devices, minus a tenth for other pods there."""
    return replace(
        _on_spot(found, node),
        tolerations=tolerations(node),
        # CUDA shows a process one MIG slice, and a second share of a GPU adds nothing.
        units_per_workload=units if found.is_exclusive else 1,
        cpu_per_unit=max(1, int(node.allocatable.get("cpu", 1) * 0.9) // devices),
        memory_gib_per_unit=max(1, int(node.allocatable.get("memory", 1) * 0.9) // devices),
        units=units,
        nodes=(node.name,),
    )


def _on_spot(found: ClassProposal, node: NodeFacts) -> ClassProposal:
    """Spot nodes are a class of their own: only runs that can be interrupted may use them."""
    label = spot_label(node.labels)
    if label is None:
        return found
    return replace(
        found,
        slug=dns_label(f"{found.slug}-spot", limit=SLUG_LIMIT),
        name=class_title(found.name, note="spot"),
        node_labels={**found.node_labels, label[0]: label[1]},
    )
