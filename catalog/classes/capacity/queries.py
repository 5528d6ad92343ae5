"""The units of each class that nodes have and that are in use, from the mirror. A missing class is unknown, not 0."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from itertools import pairwise

from catalog.classes.capacity.device_memory import GIB as GIB
from catalog.classes.capacity.device_memory import memory_of
from catalog.classes.capacity.types import Capacity, NodeCapacity
from catalog.discovery import dra_devices
from catalog.discovery import types as discovery_types
from catalog.models import GpuClass
from cluster.models import Cluster
from cluster.reads import queries as mirror
from cluster.reads import units as seen_units
from cluster.reads.taints import is_tolerated
from cluster.reads.units import CPU, SLICES, ResourceUnits

STORAGE_UNKNOWN = "The cluster does not report its storage capacity."


def capacities(cluster: Cluster, classes: Collection[GpuClass], *, with_nodes: bool = False) -> dict[int, Capacity]:
    """Capacity by class id. Two queries, three with a DRA class of unlike devices; without nodes their cost grows with
    the kinds of hardware. Storage capacity is unknown: no node has it.
    """
    unknown = {one.pk: Capacity(problem=STORAGE_UNKNOWN) for one in classes if one.is_storage}
    classes = [one for one in classes if not one.is_storage]
    return unknown | _of_nodes(cluster, classes, with_nodes) if classes else unknown


def _of_nodes(cluster: Cluster, classes: Collection[GpuClass], with_nodes: bool) -> dict[int, Capacity]:
    kinds = ["Node", "Pod"]
    if any(gpu_class.interface == GpuClass.Interface.DRA for gpu_class in classes):
        kinds += ["ResourceSlice", "ResourceClaim"]
    as_of = mirror.as_of(cluster.pk, *kinds)
    if as_of.at is None:
        return {gpu_class.pk: Capacity(problem=as_of.problem) for gpu_class in classes}
    labels = {name for gpu_class in classes for name in gpu_class.node_labels}
    seen = seen_units.resource_units(
        cluster.pk, {_asked(one) for one in classes}, labels=sorted(labels), by_node=with_nodes
    )
    known = {dra_devices.device_class(one.device) for one in seen if one.resource == SLICES}
    known |= dra_devices.NVIDIA_CLASSES
    found = {gpu_class.pk: _of(gpu_class, seen, known) for gpu_class in classes}
    if not with_nodes and any(_has_several_kinds(units) for units in found.values()):
        # The sum of several kinds of devices on one node is only known node by node.
        devices_seen = seen_units.resource_units(cluster.pk, {(SLICES, 1)}, labels=sorted(labels), by_node=True)
        for gpu_class in classes:
            if gpu_class.interface == GpuClass.Interface.DRA:
                found[gpu_class.pk] = _of(gpu_class, devices_seen, known)
    base = Capacity(as_of=as_of.at, is_current=as_of.is_current, problem=as_of.problem)
    return {gpu_class.pk: _capacity(found[gpu_class.pk], gpu_class, base, with_nodes) for gpu_class in classes}


def of_memory(found: Capacity, gpu_class: GpuClass, gib: int) -> Capacity:
    """Only the devices with at least so many GiB of memory, of a class whose `memory_sizes` are known. Pure."""
    theirs = [one for one in found.parts if memory_of(one) >= gib * GIB]
    return _capacity(theirs, gpu_class, found, bool(found.nodes)) if found.is_known else found


def units_used(cluster: Cluster, classes: Iterable[GpuClass], *, namespace: str) -> dict[int, int]:
    """Units by class id of a namespace's pods that are bound to a node and not finished, and GiB of its volumes.
    Unknown values are left out.
    """
    every = list(classes)
    of_pods, storage = [one for one in every if not one.is_storage], [one for one in every if one.is_storage]
    gib = claimed_gib(cluster, namespace=namespace) if storage else None
    found = {} if gib is None else {one.pk: gib for one in storage}
    if not of_pods or not mirror.is_known(cluster.pk, "Pod", "ResourceClaim"):
        return found
    used = used_by_namespace(cluster, of_pods, namespaces=[namespace])
    return found | {pk: units.get(namespace, 0) for pk, units in used.items()}


def claimed_gib(cluster: Cluster, *, namespace: str) -> int | None:
    """What the namespace's volume claims request together, rounded up; None when unknown."""
    if not mirror.is_known(cluster.pk, "PersistentVolumeClaim"):
        return None
    claims = mirror.objects(cluster.pk, kind="PersistentVolumeClaim", namespace=namespace)
    return -(-sum(int(one.record["asked_bytes"]) for one in claims) // GIB)


def used_by_namespace(
    cluster: Cluster, classes: Iterable[GpuClass], *, namespaces: Collection[str] | None = None
) -> dict[int, dict[str, int]]:
    """Class id → namespace → units of our pods that are bound to a node and not finished, as the mirror shows them.
    Pods use no storage class.

    One query. `namespaces`: only these. The caller has already checked that the mirror is complete.
    """
    by_slug = {gpu_class.slug: gpu_class for gpu_class in classes}
    asked = [(slug, *_asked(gpu_class)) for slug, gpu_class in by_slug.items() if not gpu_class.is_storage]
    found: dict[int, dict[str, int]] = {gpu_class.pk: {} for gpu_class in by_slug.values()}
    for (name, slug), units in seen_units.used_by_namespace(cluster.pk, asked, namespaces=namespaces).items():
        found[by_slug[slug].pk][name] = units
    return found


def _asked(gpu_class: GpuClass) -> tuple[str, int]:
    """Returns the resource that counts a class, and how much of it is one unit."""
    if gpu_class.interface == GpuClass.Interface.DRA:
        return SLICES, 1
    if gpu_class.interface == GpuClass.Interface.NONE:
        return CPU, gpu_class.cpu_per_unit * 1000
    return gpu_class.resource, 1


def _of(gpu_class: GpuClass, seen: Iterable[ResourceUnits], known: Collection[str]) -> list[ResourceUnits]:
    """Returns the units that the class selects; units with a taint that its pods do not tolerate count as cordoned."""
    theirs = [one for one in seen if _is_of(gpu_class, one, known)]
    return [
        one
        if all(is_tolerated(taint, gpu_class.tolerations) for taint in one.shape.taints)
        else replace(one, schedulable=False)
        for one in theirs
    ]


def _is_of(gpu_class: GpuClass, one: ResourceUnits, known: Collection[str]) -> bool:
    if (one.resource, one.size) != _asked(gpu_class):
        return False
    if gpu_class.interface == GpuClass.Interface.NONE:
        has_devices = any(discovery_types.is_device(resource) for resource in one.shape.resources)
        return not has_devices and not one.shape.taints
    if any(one.shape.labels.get(name) != value for name, value in gpu_class.node_labels.items()):
        return False
    return gpu_class.interface != GpuClass.Interface.DRA or dra_devices.may_take(
        one.device, of_class=gpu_class.device_class, selector=gpu_class.device_selector, known=known
    )


def _has_several_kinds(seen: Collection[ResourceUnits]) -> bool:
    return any(one.device != other.device for one, other in pairwise(seen))


def _joined(seen: Collection[ResourceUnits]) -> list[ResourceUnits]:
    """Adds up the units of one node, if a class may take devices of several kinds."""
    if not _has_several_kinds(seen):
        return list(seen)
    by_node: dict[str, ResourceUnits] = {}
    for one in seen:
        other = by_node.get(one.node)
        by_node[one.node] = (
            replace(one, **{name: getattr(one, name) + getattr(other, name) for name in _SUMS}) if other else one
        )
    return list(by_node.values())


_SUMS = ("capacity", "allocatable", "used", "free", "most_free", "largest")


def _capacity(seen: Collection[ResourceUnits], gpu_class: GpuClass, base: Capacity, with_nodes: bool) -> Capacity:
    ready = [one for one in _joined(seen) if one.ready]
    usable = [one for one in ready if one.schedulable]
    has_gpu = gpu_class.interface != GpuClass.Interface.NONE
    return replace(
        base,
        allocatable=sum(one.allocatable for one in ready),
        used=sum(one.used for one in seen),
        free=sum(one.free for one in usable),
        most_on_one_node=max((one.most_free for one in usable), default=0),
        largest_node=max((one.largest for one in ready), default=0),
        # A node keeps some cores for itself: they are not unhealthy.
        unhealthy=sum(max(0, one.capacity - one.allocatable) for one in ready) if has_gpu else 0,
        cordoned=sum(one.allocatable for one in ready if not one.schedulable),
        nodes=tuple(NodeCapacity(one.node, one.allocatable, one.used) for one in usable) if with_nodes else (),
        parts=tuple(seen),
    )
