"""Reads about the catalog: classes with capacity from the mirror. A mirror that is not there is unknown, never 0."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import QuerySet

from catalog import discovery
from catalog.models import GpuClass
from cluster import names, observed
from cluster import queries as mirror
from cluster.models import Cluster
from portal.errors import refuse

LifeCycle = GpuClass.LifeCycle
# What people see: a draft is the operators' own, a retired class has nothing left.
OPEN = (LifeCycle.ACTIVE, LifeCycle.RETIRING)


@dataclass(frozen=True)
class NodeCapacity:
    """Units of one class on one node that is ready and schedulable."""

    name: str
    allocatable: int
    used: int

    @property
    def free(self) -> int:
        return max(0, self.allocatable - self.used)


@dataclass(frozen=True)
class Capacity:
    """Units of a class, as the mirror shows them. All figures None: nothing is known.

    `used`: of pods bound to a node and not finished, whoever made them. `free`: allocatable on ready, schedulable nodes
    less used. `most_on_one_node`: free now; `largest_node`: allocatable, what a workload can ever have. `allocatable`
    counts ready nodes that are cordoned too: they come back.
    """

    allocatable: int | None = None
    used: int | None = None
    free: int | None = None
    most_on_one_node: int | None = None
    largest_node: int | None = None
    nodes: tuple[NodeCapacity, ...] = ()
    as_of: datetime | None = None
    is_current: bool = False
    problem: str = ""

    @property
    def is_known(self) -> bool:
        return self.allocatable is not None


@dataclass(frozen=True)
class ClassView:
    """A class of the catalog as pages and the API show it."""

    id: int
    slug: str
    name: str
    summary: str
    vendor: str
    product: str
    partition: str
    sharing: str
    replicas: int
    interface: str
    resource: str
    interconnect: str
    memory_mib: int | None
    units_per_workload: int
    cpu_per_unit: int
    memory_gib_per_unit: int
    price_per_unit_hour: str
    weight: str
    borrowing_limit: int
    promise_limit: int | None
    life_cycle: str
    capacity: Capacity = field(default_factory=Capacity)

    @property
    def is_shared(self) -> bool:
        return self.sharing != "none"

    @property
    def unit(self) -> str:
        return unit_of(self)


def unit_of(one: GpuClass | ClassView) -> str:
    """What one unit is called: card, slice, share or core."""
    if one.interface == GpuClass.Interface.NONE:
        return "core"
    if one.sharing != GpuClass.Sharing.NONE:
        return "share"
    return "slice" if one.partition != "none" else "card"


def cluster() -> Cluster:
    """The one cluster of this installation. Raises Refused: no_cluster (503)."""
    found = Cluster.objects.filter(name=settings.CLUSTER_NAME).first()
    if found is None:
        raise refuse("no_cluster", "No cluster has been set up yet. Operators: `manage.py catalog settle`.", status=503)
    return found


def flavor_name(gpu_class: GpuClass) -> str:
    """ "" for a class without GPUs. Tolerations count as well: of a flavor with a topology they are immutable too."""
    if not gpu_class.resource:
        return ""
    tolerations = {
        f"toleration {index}": json.dumps(one, sort_keys=True) for index, one in enumerate(gpu_class.tolerations)
    }
    return names.flavor_name(gpu_class.slug, {**gpu_class.node_labels, **tolerations})


def open_classes(cluster: Cluster) -> QuerySet[GpuClass]:
    return GpuClass.objects.filter(cluster=cluster, life_cycle__in=OPEN).order_by("slug")


def class_views(cluster: Cluster, classes: Iterable[GpuClass] | None = None) -> list[ClassView]:
    """The open classes (or those given) by slug, with capacity. Seven queries, whatever their number."""
    found = list(open_classes(cluster) if classes is None else classes)
    capacity = capacities(cluster, found)
    return [_view(gpu_class, capacity[gpu_class.pk]) for gpu_class in found]


def capacities(cluster: Cluster, classes: Collection[GpuClass]) -> dict[int, Capacity]:
    """Capacity by class id."""
    kinds = ["Node", "Pod"]
    if any(gpu_class.interface == GpuClass.Interface.DRA for gpu_class in classes):
        kinds += ["ResourceSlice", "ResourceClaim"]
    as_of = mirror.as_of(cluster.pk, *kinds)
    if as_of.at is None:
        return {gpu_class.pk: Capacity(problem=as_of.problem) for gpu_class in classes}
    seen = _Seen(
        nodes=mirror.nodes(cluster.pk),
        requests=mirror.requests_by_node(cluster.pk),
        devices=_devices_by_node(cluster) if "ResourceSlice" in kinds else {},
    )
    return {gpu_class.pk: _capacity(gpu_class, seen, as_of) for gpu_class in classes}


def promise_limits(classes: Collection[GpuClass]) -> dict[int, int | None]:
    """Units of each class that may be promised at one time: staff's limit, else allocatable; None: unknown."""
    typed = {gpu_class.pk: gpu_class.promise_limit for gpu_class in classes}
    open_ended = [gpu_class for gpu_class in classes if gpu_class.promise_limit is None]
    if open_ended:
        found = capacities(open_ended[0].cluster, open_ended)
        typed |= {pk: capacity.allocatable for pk, capacity in found.items()}
    return typed


def units_used(cluster: Cluster, classes: Iterable[GpuClass], *, namespace: str) -> dict[int, int]:
    """Units by class id of a namespace's pods that are bound to a node and not finished; {} when nothing is known."""
    if not mirror.is_known(cluster.pk, "Pod", "ResourceClaim"):
        return {}
    bound = [pod for pod in mirror.pods(cluster.pk, namespace=namespace) if pod.node and not pod.is_over]
    seen = mirror.objects(cluster.pk, kind="ResourceClaim", namespace=namespace)
    claims = {claim.name: len(claim.record["devices"]) for claim in seen}
    return {
        gpu_class.pk: sum(_units_of(gpu_class, pod, claims) for pod in bound if pod.gpu_class == gpu_class.slug)
        for gpu_class in classes
    }


def _units_of(gpu_class: GpuClass, pod: observed.Pod, claims: dict[str, int]) -> int:
    if gpu_class.interface == GpuClass.Interface.DRA:
        return sum(claims.get(name, 0) for name in pod.claims)
    if gpu_class.interface == GpuClass.Interface.NONE:
        return -(-pod.requests.get("cpu", 0) // (gpu_class.cpu_per_unit * 1000))
    return pod.requests.get(gpu_class.resource, 0)


def discover(cluster: Cluster) -> discovery.Discovery | None:
    """Classes for what is in the cluster now, or None while the mirror is unknown."""
    if not mirror.is_known(cluster.pk, "Node", "ResourceSlice"):
        return None
    slices = mirror.objects(cluster.pk, kind="ResourceSlice")
    return discovery.discover(
        [_discovery_node(node) for node in mirror.nodes(cluster.pk)],
        [device for one in slices for device in _discovery_devices(one)],
    )


# ---- mirror to values --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Seen:
    """`devices`: node → (names of devices, names of those in use)."""

    nodes: list[observed.Node]
    requests: dict[str, dict[str, int]]
    devices: dict[str, tuple[set[str], set[str]]]


def _capacity(gpu_class: GpuClass, seen: _Seen, as_of: observed.AsOf) -> Capacity:
    matching = [node for node in seen.nodes if _is_node_of(gpu_class, node)]
    ready = [node for node in matching if node.ready]
    by_node = {node.name: NodeCapacity(node.name, *_units(gpu_class, node, seen)) for node in ready}
    usable = [by_node[node.name] for node in ready if node.schedulable]
    return Capacity(
        allocatable=sum(one.allocatable for one in by_node.values()),
        used=sum(_units(gpu_class, node, seen)[1] for node in matching),
        free=sum(one.free for one in usable),
        most_on_one_node=max((one.free for one in usable), default=0),
        largest_node=max((one.allocatable for one in by_node.values()), default=0),
        nodes=tuple(usable),
        as_of=as_of.at,
        is_current=as_of.is_current,
        problem=as_of.problem,
    )


def _is_node_of(gpu_class: GpuClass, node: observed.Node) -> bool:
    if gpu_class.interface == GpuClass.Interface.NONE:
        return not any(discovery.is_device(resource) for resource in node.allocatable) and _is_open(node)
    return all(node.labels.get(name) == value for name, value in gpu_class.node_labels.items())


def _is_open(node: observed.Node) -> bool:
    return not any(taint.effect in ("NoSchedule", "NoExecute") for taint in node.taints)


def _units(gpu_class: GpuClass, node: observed.Node, seen: _Seen) -> tuple[int, int]:
    """Units on this node: allocatable, used. The selector of a DRA class is CEL, which only the scheduler evaluates:
    its node labels have to tell its devices apart.
    """
    requests = seen.requests.get(node.name, {})
    if gpu_class.interface == GpuClass.Interface.DRA:
        names_here, used_here = seen.devices.get(node.name, (set(), set()))
        return len(names_here), len(used_here)
    if gpu_class.interface == GpuClass.Interface.NONE:
        per_unit = gpu_class.cpu_per_unit * 1000
        return node.allocatable.get("cpu", 0) // per_unit, -(-requests.get("cpu", 0) // per_unit)
    return node.allocatable.get(gpu_class.resource, 0), requests.get(gpu_class.resource, 0)


def _devices_by_node(cluster: Cluster) -> dict[str, tuple[set[str], set[str]]]:
    in_use = mirror.devices_in_use(cluster.pk)
    found: dict[str, tuple[set[str], set[str]]] = {}
    for one in mirror.objects(cluster.pk, kind="ResourceSlice"):
        here, used = found.setdefault(one.record["node"], (set(), set()))
        devices = {device["name"] for device in one.record["devices"]}
        here |= devices
        used |= devices & in_use.get((one.record["driver"], one.record["pool"]), set())
    return found


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


def _view(gpu_class: GpuClass, capacity: Capacity) -> ClassView:
    same: dict[str, Any] = {
        name: getattr(gpu_class, name)
        for name in ClassView.__dataclass_fields__
        if name not in ("capacity", "price_per_unit_hour", "weight")
    }
    return ClassView(
        **same,
        price_per_unit_hour=f"{gpu_class.price_per_unit_hour:f}",
        weight=f"{gpu_class.weight:f}",
        capacity=capacity,
    )
