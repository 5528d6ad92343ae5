"""Nodes for staff: the list, and one node with its labels, devices, layout, pods, and who waits for it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet
from django.db.models.fields.json import KT
from django.urls import reverse

from accounts.paging import page_of
from catalog import discovery
from catalog import queries as catalog
from catalog.models import GpuClass
from cluster import queries as mirror
from cluster.models import Cluster, MirrorNode, MirrorObject, MirrorPod
from cluster.observed import AsOf, Node
from desk.queries.mig_cards import MigNode, mig_node
from portal.due import label
from portal.errors import get_or_refuse
from tenants.models import Namespace
from workloads.models import Run, Workload

PAGE_SIZE = 50
WAITING_SHOWN = 20
CONFIG, STATE, PLUGIN = "nvidia.com/mig.config", "nvidia.com/mig.config.state", "nvidia.com/device-plugin.config"
AMD_PARTITION = "amd.com/compute-memory-partition"
PRODUCT_LABELS = ("nvidia.com/gpu.product", "amd.com/gpu.product-name", "gpu.intel.com/product")
FILTERS: Mapping[str, Q] = {
    "": Q(),
    "not-ready": Q(ready=False),
    "cordoned": Q(schedulable=False),
    "changing": Q(record__labels__has_key=STATE) & ~Q(**{f"record__labels__{STATE}": "success"}),
}
OVER = ("Succeeded", "Failed")


@dataclass(frozen=True)
class DeviceLine:
    """One resource of one node, in units. `resource` of DRA devices is their driver; those have no health here."""

    resource: str
    capacity: int
    allocatable: int
    used: int

    @property
    def is_claimed(self) -> bool:
        """Of a DRA driver, and taken by claims."""
        return "/" not in self.resource

    @property
    def unhealthy(self) -> int:
        return max(0, self.capacity - self.allocatable)


@dataclass(frozen=True)
class NodeLine:
    name: str
    product: str
    ready: bool
    schedulable: bool
    layout: str
    layout_state: str
    devices: tuple[DeviceLine, ...]


@dataclass(frozen=True)
class NodeList:
    lines: list[NodeLine]
    next_cursor: str | None
    as_of: AsOf

    @property
    def is_stale(self) -> bool:
        return not self.as_of.is_current


@dataclass(frozen=True)
class LayoutLine:
    """`manager` "": not recorded. `at`: the value is at least as old as this, None when nothing tells."""

    what: str
    label: str
    value: str
    manager: str
    at: datetime | None


@dataclass(frozen=True)
class PodLine:
    """Something that holds devices of the node; `href` leads to the workload when it is ours."""

    namespace: str
    name: str
    units: str
    workload: str
    href: str


@dataclass(frozen=True)
class ClassLine:
    """An open class that selects this node. `lost`: units that the node has and does not offer.

    `only_here`: no other node has a unit of it; `teams`: whose pods of this class are here.
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
class WaitingLine:
    team: str
    name: str
    href: str
    class_name: str
    units: int
    since: datetime


@dataclass(frozen=True)
class NodePage:
    node: Node
    as_of: AsOf
    product: str
    labels: tuple[tuple[str, str], ...]
    devices: tuple[DeviceLine, ...]
    layout: tuple[LayoutLine, ...]
    mig: MigNode | None
    pods: tuple[PodLine, ...]
    classes: tuple[ClassLine, ...]
    waiting: tuple[WaitingLine, ...]
    waiting_count: int

    @property
    def is_stale(self) -> bool:
        return not self.as_of.is_current


def node_list(cluster: Cluster, *, q: str, state: str, cursor: str | None) -> NodeList:
    """By name. Six queries, whatever the number of nodes and pods. Raises Refused (bad_cursor)."""
    rows = MirrorNode.objects.filter(FILTERS.get(state, Q()), cluster_id=cluster.pk)
    if q:
        rows = rows.filter(Q(name__icontains=q) | Q(record__labels__icontains=q))
    page = page_of(rows, keys=("name",), limit=PAGE_SIZE, cursor=cursor)
    names = [row.name for row in page.items]
    devices = _devices(cluster, page.items)
    return NodeList(
        lines=[_line(row, devices[row.name]) for row in page.items],
        next_cursor=page.next_cursor,
        as_of=mirror.as_of(cluster.pk, "Node", "Pod", *(["ResourceSlice", "ResourceClaim"] if names else [])),
    )


def node_page(cluster: Cluster, name: str) -> NodePage:
    """About a dozen queries, whatever the number of pods, classes and other nodes. Raises Refused (404)."""
    row = get_or_refuse(MirrorNode.objects.filter(cluster_id=cluster.pk), name=name)
    node = mirror.node_named(cluster.pk, name)
    assert node is not None
    devices = _devices(cluster, [row])[name]
    pods = _pods_on(cluster, [name]).order_by("namespace", "name")
    found: list[Any] = list(pods.values("namespace", "name", "owner", "gpu_class", "record__requests"))
    classes = _classes_of(cluster, node, devices)
    teams = _teams(cluster, found)
    only_here = _only_here(cluster, name, classes)
    waiting = _waiting(cluster, [one for one in classes if one.pk in only_here])
    used: dict[str, int] = {line.resource: line.used for line in devices}
    return NodePage(
        node=node,
        as_of=mirror.as_of(cluster.pk, "Node", "Pod", "ResourceSlice", "ResourceClaim"),
        product=_product(node.labels),
        labels=_grouped(node.labels),
        devices=tuple(devices),
        layout=tuple(_layout(node)),
        mig=mig_node(node, used=used, yours={}),
        pods=tuple(_pod_lines(cluster, name, found)),
        classes=tuple(
            ClassLine(
                slug=one.slug,
                name=one.name,
                unit=catalog.unit_of(one),
                offered=line.allocatable if node.ready else 0,
                lost=line.unhealthy if node.ready else line.capacity,
                teams=tuple(sorted({teams[pod["namespace"]] for pod in found if _is_of(pod, one, teams)})),
                only_here=one.pk in only_here,
                waiting_units=sum(run.spec["units"] for run in waiting if run.spec["gpu_class"] == one.slug),
            )
            for one in classes
            if (line := _line_of(one, devices)) is not None
        ),
        waiting=tuple(_waiting_line(run, {one.slug: one.name for one in classes}) for run in waiting[:WAITING_SHOWN]),
        waiting_count=len(waiting),
    )


# ---- devices -----------------------------------------------------------------------------------------------------


def _pods_on(cluster: Cluster, names: Collection[str]) -> QuerySet[MirrorPod]:
    return MirrorPod.objects.filter(cluster_id=cluster.pk, node__in=names).exclude(phase__in=OVER)


def _devices(cluster: Cluster, rows: Iterable[MirrorNode]) -> dict[str, list[DeviceLine]]:
    """By node: extended resources by name, then DRA devices by driver. Three queries."""
    rows = list(rows)
    names = [row.name for row in rows]
    used: dict[tuple[str, str], int] = {}
    for node, requests in _pods_on(cluster, names).values_list("node", "record__requests"):
        for resource, units in requests.items():
            used[node, resource] = used.get((node, resource), 0) + units
    found: dict[str, list[DeviceLine]] = {}
    for row in rows:
        capacity, allocatable = row.record["capacity"], row.record["allocatable"]
        resources = sorted(name for name in {**capacity, **allocatable} if discovery.is_device(name))
        found[row.name] = [
            DeviceLine(name, capacity.get(name, 0), allocatable.get(name, 0), used.get((row.name, name), 0))
            for name in resources
        ]
    slices = MirrorObject.objects.filter(cluster_id=cluster.pk, kind="ResourceSlice", record__node__in=names)
    in_use = mirror.devices_in_use(cluster.pk)
    for record in slices.order_by("name").values_list("record", flat=True):
        devices = {device["name"] for device in record["devices"]}
        held = devices & in_use.get((record["driver"], record["pool"]), set())
        found[record["node"]].append(DeviceLine(record["driver"], len(devices), len(devices), len(held)))
    return found


def _line(row: MirrorNode, devices: list[DeviceLine]) -> NodeLine:
    labels = row.record["labels"]
    return NodeLine(
        name=row.name,
        product=_product(labels),
        ready=row.ready,
        schedulable=row.schedulable,
        layout=labels.get(CONFIG, ""),
        layout_state=labels.get(STATE, ""),
        devices=tuple(devices),
    )


def _product(labels: Mapping[str, str]) -> str:
    return next((labels[name] for name in PRODUCT_LABELS if labels.get(name)), "")


def _grouped(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """(prefix, lines "name=value") in order; labels without a prefix come last."""
    groups: dict[str, list[str]] = {}
    for name in sorted(labels):
        prefix, slash, _ = name.partition("/")
        groups.setdefault(prefix if slash else "", []).append(f"{name}={labels[name]}")
    return tuple((prefix, "\n".join(groups[prefix])) for prefix in sorted(groups, key=lambda one: (one == "", one)))


def _layout(node: Node) -> Iterable[LayoutLine]:
    titles = {
        CONFIG: "MIG layout asked",
        STATE: "MIG layout reached",
        PLUGIN: "Sharing asked",
        AMD_PARTITION: "Partition reached",
    }
    for name, what in titles.items():
        if name in node.labels:
            writer = node.writers.get(name)
            at = writer.at if writer else None
            yield LayoutLine(what, name, node.labels[name], writer.manager if writer else "", at)


# ---- pods --------------------------------------------------------------------------------------------------------


def _pod_lines(cluster: Cluster, node: str, pods: list[dict[str, Any]]) -> Iterable[PodLine]:
    """Pods with devices, then claims on DRA devices of the node. Two queries."""
    prefix = f"{label(Workload)}."
    ids = [int(pod["owner"].removeprefix(prefix)) for pod in pods if _is_workload(pod["owner"], prefix)]
    found = Workload.objects.filter(pk__in=ids, namespace__cluster=cluster).select_related("tenant")
    workloads = {f"{prefix}{one.pk}": one for one in found}
    for pod in pods:
        requests: dict[str, int] = pod["record__requests"]
        held = [f"{units} {name}" for name, units in sorted(requests.items()) if units and discovery.is_device(name)]
        if held:
            yield _pod_line(pod, ", ".join(held), workloads.get(pod["owner"]))
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


def _pod_line(pod: Mapping[str, Any], units: str, workload: Workload | None) -> PodLine:
    href = reverse("workload", args=[workload.tenant.slug, workload.name]) if workload is not None else ""
    return PodLine(pod["namespace"], pod["name"], units, workload.name if workload is not None else "", href)


def _teams(cluster: Cluster, pods: Iterable[dict[str, Any]]) -> dict[str, str]:
    """Team by namespace, of those that have pods here. One query."""
    names = {pod["namespace"] for pod in pods}
    rows = Namespace.objects.filter(cluster=cluster, name__in=names).select_related("tenant")
    return {row.name: row.tenant.name for row in rows}


def _is_of(pod: Mapping[str, Any], one: GpuClass, teams: Mapping[str, str]) -> bool:
    return pod["gpu_class"] == one.slug and pod["namespace"] in teams


# ---- classes and who waits ---------------------------------------------------------------------------------------


def _classes_of(cluster: Cluster, node: Node, devices: list[DeviceLine]) -> list[GpuClass]:
    """Open classes with a GPU whose selector this node matches and whose resource it has, healthy or not. One query."""
    return [
        one
        for one in catalog.open_classes(cluster).exclude(interface=GpuClass.Interface.NONE)
        if one.node_labels.items() <= node.labels.items() and _line_of(one, devices) is not None
    ]


def _line_of(one: GpuClass, devices: Iterable[DeviceLine]) -> DeviceLine | None:
    """DRA devices of the node stand under their driver; its device classes are named after it."""
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
    """Runs that were asked for and not admitted, oldest first. One query, and none without such a class."""
    if not classes:
        return []
    runs = Run.objects.filter(workload__namespace__cluster=cluster, ended_at=None, admitted_at=None)
    slugs = [one.slug for one in classes]
    return list(
        runs.alias(slug=KT("spec__gpu_class")).filter(slug__in=slugs).select_related("workload__tenant").order_by("pk")
    )


def _waiting_line(run: Run, names: Mapping[str, str]) -> WaitingLine:
    tenant = run.workload.tenant
    return WaitingLine(
        team=tenant.name,
        name=run.workload.name,
        href=reverse("workload", args=[tenant.slug, run.workload.name]),
        class_name=names[run.spec["gpu_class"]],
        units=run.spec["units"],
        since=run.requested_at,
    )
