"""Allocations on a node: its devices, the pods that use them, their classes, and runs queued for this node only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q
from django.db.models.fields.json import KT
from django.urls import reverse

from catalog.classes import queries as catalog
from catalog.discovery import types as discovery_types
from catalog.models import GpuClass
from cluster.models import Cluster, MirrorNode, MirrorObject, MirrorPod
from cluster.reads import queries as mirror
from cluster.reads.observed import Node
from desk.nodes.faulty_units import unhealthy_units, units_on_gpus
from portal.core.due import table_label
from tenants.models import Namespace
from usage.faults.queries import Fault, unhealthy_devices
from workloads.core.unit_sql import HOLDS
from workloads.models import Run, Workload

WAITING_SHOWN = 20


@dataclass(frozen=True)
class DeviceLine:
    """One resource of one node, in units. `resource` of DRA devices is their driver; those have no health here.

    `faulty`: units on GPUs with faults (usage.faults), None if they cannot be counted.
    """

    resource: str
    capacity: int
    allocatable: int
    used: int
    faulty: int | None = 0

    @property
    def is_claimed(self) -> bool:
        """True for devices of a DRA driver, which claims allocate."""
        return "/" not in self.resource

    @property
    def unhealthy(self) -> int:
        return unhealthy_units(self.capacity, self.allocatable, self.faulty)


@dataclass(frozen=True)
class DevicePod:
    """A pod or claim that uses devices of the node; `href` links to its workload, "" outside the portal."""

    namespace: str
    name: str
    units: str
    workload: str
    href: str


@dataclass(frozen=True)
class NodeClass:
    """An open class that selects this node. `lost`: units that the node has and does not offer.

    `only_here`: no other node has a unit of it; `teams`: those with pods of this class here.
    """

    slug: str
    name: str
    unit: str
    offered: int
    lost: int
    teams: tuple[str, ...]
    only_here: bool
    waiting_units: int


@dataclass(frozen=True)
class QueuedForNode:
    team: str
    name: str
    href: str
    class_name: str
    units: int
    since: datetime


@dataclass(frozen=True)
class NodeAllocations:
    """`waiting`: the oldest of `waiting_count`."""

    pods: tuple[DevicePod, ...]
    classes: tuple[NodeClass, ...]
    waiting: tuple[QueuedForNode, ...]
    waiting_count: int


def devices_of(
    cluster: Cluster, nodes: Sequence[Node], faults: Mapping[str, Sequence[Fault]]
) -> dict[str, list[DeviceLine]]:
    """By node: extended resources by name, then DRA devices by driver. `faults`: open ones by node. Three queries."""
    names = [node.name for node in nodes]
    used = mirror.requests_by_node(cluster.pk, names)
    found = {
        node.name: list(_extended(node, used.get(node.name, {}), unhealthy_devices(faults.get(node.name, ()))))
        for node in nodes
    }
    slices = MirrorObject.objects.filter(cluster_id=cluster.pk, kind="ResourceSlice", record__node__in=names)
    in_use = mirror.devices_in_use(cluster.pk)
    for record in slices.order_by("name").values_list("record", flat=True):
        devices = {device["name"] for device in record["devices"]}
        held = devices & in_use.get((record["driver"], record["pool"]), set())
        found[record["node"]].append(DeviceLine(record["driver"], len(devices), len(devices), len(held)))
    return found


def devices_text(requests: Mapping[str, int]) -> str:
    """Returns `2 nvidia.com/gpu`, with the resource names of the cluster; "" for a pod without devices."""
    held = sorted((name, units) for name, units in requests.items() if units and discovery_types.is_device(name))
    return ", ".join(f"{units} {name}" for name, units in held)


def allocations_on(cluster: Cluster, node: Node, devices: Sequence[DeviceLine]) -> NodeAllocations:
    """About eight queries. `devices`: those of the node."""
    rows = MirrorPod.objects.filter(cluster_id=cluster.pk, node=node.name).exclude(phase__in=("Succeeded", "Failed"))
    pods: list[Any] = list(
        rows.order_by("namespace", "name").values("namespace", "name", "owner", "gpu_class", "record__requests")
    )
    lines = _lines_by_class(cluster, node, devices)
    classes = list(lines)
    teams = _teams(cluster, pods)
    only_here = _only_here(cluster, node.name, classes)
    waiting = _waiting(cluster, [one for one in classes if one.pk in only_here])
    return NodeAllocations(
        pods=tuple(_pod_lines(cluster, node.name, pods)),
        classes=tuple(
            NodeClass(
                slug=one.slug,
                name=one.name,
                unit=catalog.unit_of(one),
                offered=line.allocatable if node.ready else 0,
                lost=line.unhealthy if node.ready else line.capacity,
                teams=tuple(sorted({teams[pod["namespace"]] for pod in pods if _is_of(pod, one, teams)})),
                only_here=one.pk in only_here,
                waiting_units=sum(run.total_units for run in waiting if run.spec["gpu_class"] == one.slug),
            )
            for one, line in lines.items()
        ),
        waiting=tuple(_waiting_line(run, {one.slug: one.name for one in classes}) for run in waiting[:WAITING_SHOWN]),
        waiting_count=len(waiting),
    )


def _extended(node: Node, used: Mapping[str, int], faulty: int) -> Iterable[DeviceLine]:
    for name in sorted({*node.capacity, *node.allocatable}):
        if discovery_types.is_device(name):
            capacity, allocatable = node.capacity.get(name, 0), node.allocatable.get(name, 0)
            units = units_on_gpus(node, name, faulty)
            yield DeviceLine(name, capacity, allocatable, used.get(name, 0), units)


# ---- pods on the node --------------------------------------------------------------------------------------------


def _pod_lines(cluster: Cluster, node: str, pods: list[dict[str, Any]]) -> Iterable[DevicePod]:
    """Pods with devices, then claims on DRA devices of the node. Two queries."""
    prefix = f"{table_label(Workload)}."
    ids = [int(pod["owner"].removeprefix(prefix)) for pod in pods if _is_workload(pod["owner"], prefix)]
    found = Workload.objects.filter(pk__in=ids, namespace__cluster=cluster).select_related("tenant")
    workloads = {f"{prefix}{one.pk}": one for one in found}
    for pod in pods:
        requests: dict[str, int] = pod["record__requests"]
        if held := devices_text(requests):
            yield _pod_line(pod, held, workloads.get(pod["owner"]))
    by_place = {(pod["namespace"], pod["name"]): pod for pod in pods}
    claims = MirrorObject.objects.filter(
        cluster_id=cluster.pk, kind="ResourceClaim", record__devices__contains=[{"pool": node}]
    )
    for claim in claims.order_by("namespace", "name"):
        here = [device for device in claim.record["devices"] if device["pool"] == node]
        unknown = {"namespace": claim.namespace, "name": f"claim {claim.name}", "owner": ""}
        for user in claim.record["used_by"] or [""]:
            holder = by_place.get((claim.namespace, user), unknown)
            yield _pod_line(holder, f"{len(here)} {here[0]['driver']}", workloads.get(holder["owner"]))


def _is_workload(owner: str, prefix: str) -> bool:
    return owner.startswith(prefix) and owner.removeprefix(prefix).isdigit()


def _pod_line(pod: Mapping[str, Any], units: str, workload: Workload | None) -> DevicePod:
    href = reverse("workload", args=[workload.tenant.slug, workload.name]) if workload is not None else ""
    return DevicePod(pod["namespace"], pod["name"], units, workload.name if workload is not None else "", href)


def _teams(cluster: Cluster, pods: Iterable[dict[str, Any]]) -> dict[str, str]:
    """Returns team by namespace, for namespaces with pods here. One query."""
    names = {pod["namespace"] for pod in pods}
    rows = Namespace.objects.filter(cluster=cluster, name__in=names).select_related("tenant")
    return {row.name: row.tenant.name for row in rows}


def _is_of(pod: Mapping[str, Any], one: GpuClass, teams: Mapping[str, str]) -> bool:
    return pod["gpu_class"] == one.slug and pod["namespace"] in teams


# ---- classes and queued runs -------------------------------------------------------------------------------------


def _lines_by_class(cluster: Cluster, node: Node, devices: Sequence[DeviceLine]) -> dict[GpuClass, DeviceLine]:
    """Open classes with a GPU whose selector this node matches and whose resource it has, healthy or not. One query."""
    return {
        one: line
        for one in catalog.open_classes(cluster).exclude(
            interface__in=[GpuClass.Interface.NONE, GpuClass.Interface.STORAGE]
        )
        if one.node_labels.items() <= node.labels.items() and (line := _line_of(one, devices)) is not None
    }


def _line_of(one: GpuClass, devices: Iterable[DeviceLine]) -> DeviceLine | None:
    """DRA devices of the node are listed under their driver; its device classes are named after it."""
    if one.interface == GpuClass.Interface.DRA:
        return next((line for line in devices if line.is_claimed), None)
    return next((line for line in devices if line.resource == one.resource and line.capacity), None)


def _only_here(cluster: Cluster, name: str, classes: list[GpuClass]) -> set[int]:
    """Ids of classes of which no other node has a unit. One query, and none when this node has no class."""
    if not classes:
        return set()
    of_classes = Q(pk=None)
    for one in classes:
        of_classes |= Q(record__labels__contains=one.node_labels)
    others = MirrorNode.objects.filter(of_classes, cluster_id=cluster.pk).exclude(name=name)
    found = list(others.values_list("record__labels", "record__capacity"))
    return {
        one.pk
        for one in classes
        if not any(
            one.node_labels.items() <= labels.items()
            and (one.interface == GpuClass.Interface.DRA or capacity.get(one.resource, 0))
            for labels, capacity in found
        )
    }


def _waiting(cluster: Cluster, classes: list[GpuClass]) -> list[Run]:
    """Returns queued runs, oldest first. One query, and none without such a class."""
    if not classes:
        return []
    runs = Run.objects.filter(workload__namespace__cluster=cluster, ended_at=None).exclude(HOLDS)
    slugs = [one.slug for one in classes]
    return list(
        runs.alias(slug=KT("spec__gpu_class")).filter(slug__in=slugs).select_related("workload__tenant").order_by("pk")
    )


def _waiting_line(run: Run, names: Mapping[str, str]) -> QueuedForNode:
    tenant = run.workload.tenant
    return QueuedForNode(
        team=tenant.name,
        name=run.workload.name,
        href=reverse("workload", args=[tenant.slug, run.workload.name]),
        class_name=names[run.spec["gpu_class"]],
        units=run.total_units,
        since=run.requested_at,
    )
