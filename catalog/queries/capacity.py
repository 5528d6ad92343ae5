"""What the nodes have of each class and what is in use, from the mirror. One that is not there is unknown, never 0."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from catalog import discovery
from catalog.models import GpuClass
from cluster import observed
from cluster import queries as mirror
from cluster.models import Cluster


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


def units_used(cluster: Cluster, classes: Iterable[GpuClass], *, namespace: str) -> dict[int, int]:
    """Units by class id of a namespace's pods that are bound to a node and not finished; {} when nothing is known."""
    if not mirror.is_known(cluster.pk, "Pod", "ResourceClaim"):
        return {}
    bound = [pod for pod in mirror.pods(cluster.pk, namespace=namespace) if pod.node and not pod.is_over]
    seen = mirror.objects(cluster.pk, kind="ResourceClaim", namespace=namespace)
    claims = {claim.name: len(claim.record["devices"]) for claim in seen}
    return {
        gpu_class.pk: sum(units_of_pod(gpu_class, pod, claims) for pod in bound if pod.gpu_class == gpu_class.slug)
        for gpu_class in classes
    }


def units_of_pod(gpu_class: GpuClass, pod: observed.Pod, claims: dict[str, int]) -> int:
    if gpu_class.interface == GpuClass.Interface.DRA:
        return sum(claims.get(name, 0) for name in pod.claims)
    if gpu_class.interface == GpuClass.Interface.NONE:
        return -(-pod.requests.get("cpu", 0) // (gpu_class.cpu_per_unit * 1000))
    return pod.requests.get(gpu_class.resource, 0)


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
