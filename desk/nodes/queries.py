"""Nodes for staff: the list, and the page of one node, both with the faults of its GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, OuterRef, Q

from accounts.rest.paging import LIMIT_DEFAULT, page_of
from catalog.discovery.products import PRODUCT_LABELS
from catalog.interconnect.node_state import outdated, state_of
from catalog.interconnect.queries import measurement_of, measurements
from catalog.interconnect.types import Measurement
from catalog.models import NodeMeasurement
from cluster.models import Cluster, MirrorNode
from cluster.reads import queries as mirror
from cluster.reads.observed import AsOf, Node
from desk.nodes.allocations import DeviceLine, NodeAllocations, allocations_on, devices_of
from desk.nodes.gpu_stack import NodeStack
from desk.nodes.mig_drawing import MigNode, mig_node
from desk.nodes.stack_parts import stack_of_node
from portal.core.errors import get_or_refuse
from portal.ui.text import capital
from usage.faults.models import GpuFault
from usage.faults.queries import Fault, FaultReading, fault_reading, faults_of_node, open_faults

PAGE_SIZE = LIMIT_DEFAULT
MEASUREMENTS_SHOWN = 20
CONFIG, STATE, PLUGIN = "nvidia.com/mig.config", "nvidia.com/mig.config.state", "nvidia.com/device-plugin.config"
AMD_PARTITION = "amd.com/compute-memory-partition"
FILTERS: Mapping[str, Q] = {
    "": Q(),
    "not-ready": Q(ready=False),
    "cordoned": Q(schedulable=False),
    "gpu-fault": Q(
        Exists(GpuFault.objects.filter(cluster=OuterRef("cluster_id"), node=OuterRef("name"), cleared_at=None))
    ),
    "changing": Q(record__labels__has_key=STATE) & ~Q(**{f"record__labels__{STATE}": "success"}),
}


@dataclass(frozen=True)
class NodeLine:
    name: str
    product: str
    ready: bool
    schedulable: bool
    layout: str
    layout_state: str
    devices: tuple[DeviceLine, ...]
    # Open ones.
    faults: tuple[Fault, ...]
    # Who cordoned it, and since when; "" if it is not cordoned.
    cordon: str


@dataclass(frozen=True)
class NodeList:
    lines: list[NodeLine]
    reading: FaultReading
    next_cursor: str | None
    as_of: AsOf

    @property
    def is_stale(self) -> bool:
        return not self.as_of.is_current


@dataclass(frozen=True)
class LayoutLine:
    """`manager` "": not recorded. `at`: the value is at least as old as this, None when unknown."""

    what: str
    label: str
    value: str
    manager: str
    at: datetime | None


@dataclass(frozen=True)
class MeasuredLine:
    """`why_old`: what changed since, "" if nothing says so. `is_last` of its kind: it counts. `row` says whether it is
    withdrawn.
    """

    found: Measurement
    is_last: bool
    why_old: str
    row: NodeMeasurement


@dataclass(frozen=True)
class NodePage:
    node: Node
    as_of: AsOf
    product: str
    labels: tuple[tuple[str, str], ...]
    devices: tuple[DeviceLine, ...]
    layout: tuple[LayoutLine, ...]
    mig: MigNode | None
    work: NodeAllocations
    faults: tuple[Fault, ...]
    reading: FaultReading
    # None: no NVIDIA GPUs, or unknown because the mirror is stale.
    stack: NodeStack | None
    # The latest first: each kind has its last one, the others are its history.
    measured: tuple[MeasuredLine, ...]

    @property
    def is_stale(self) -> bool:
        return not self.as_of.is_current

    @property
    def cordon(self) -> str:
        """Who cordoned it, and since when; "" if it is not cordoned."""
        return f"{capital(self.node.cordon.how)}." if self.node.cordon is not None else ""

    @property
    def can_have_mig(self) -> bool:
        return self.node.labels.get("nvidia.com/mig.capable") == "true" or self.mig is not None

    @property
    def is_uncounted(self) -> bool:
        """Whether there are units on GPUs with faults whose number is unknown."""
        return any(one.faulty is None for one in self.devices)


def node_list(cluster: Cluster, *, q: str, state: str, cursor: str | None, limit: int = PAGE_SIZE) -> NodeList:
    """By name. Eight queries, whatever the number of nodes and pods. Raises Refused (bad_cursor)."""
    rows = MirrorNode.objects.filter(FILTERS.get(state, Q()), cluster_id=cluster.pk)
    if q:
        rows = rows.filter(Q(name__icontains=q) | Q(record__labels__icontains=q))
    page = page_of(rows, keys=("name",), limit=limit, cursor=cursor)
    found = [mirror.node_of(row) for row in page.items]
    faults = open_faults(cluster, [node.name for node in found])
    devices = devices_of(cluster, found, faults)
    return NodeList(
        lines=[_line(node, devices[node.name], faults.get(node.name, ())) for node in found],
        reading=fault_reading(cluster),
        next_cursor=page.next_cursor,
        as_of=mirror.as_of(cluster.pk, "Node", "Pod", *(["ResourceSlice", "ResourceClaim"] if found else [])),
    )


def node_page(cluster: Cluster, name: str) -> NodePage:
    """About fifteen queries, whatever the number of pods, classes and other nodes. Raises Refused (404)."""
    node = mirror.node_of(get_or_refuse(MirrorNode.objects.filter(cluster_id=cluster.pk), name=name))
    faults = faults_of_node(cluster, name)
    devices = devices_of(cluster, [node], {name: faults})[name]
    as_of = mirror.as_of(cluster.pk, "Node", "Pod", "ResourceSlice", "ResourceClaim")
    has_devices = any(line.allocatable for line in devices)
    return NodePage(
        node=node,
        as_of=as_of,
        product=_product(node.labels),
        labels=_grouped(node.labels),
        devices=tuple(devices),
        layout=tuple(_layout(node)),
        mig=mig_node(node, used={line.resource: line.used for line in devices}, yours={}),
        work=allocations_on(cluster, node, devices),
        faults=tuple(faults),
        reading=fault_reading(cluster),
        measured=tuple(_measured(cluster, node)),
        stack=stack_of_node(cluster, node, has_devices=has_devices) if as_of.is_current else None,
    )


def _line(node: Node, devices: list[DeviceLine], faults: Sequence[Fault]) -> NodeLine:
    return NodeLine(
        name=node.name,
        product=_product(node.labels),
        ready=node.ready,
        schedulable=node.schedulable,
        layout=node.labels.get(CONFIG, ""),
        layout_state=node.labels.get(STATE, ""),
        devices=tuple(devices),
        faults=tuple(faults),
        cordon=capital(node.cordon.how) if node.cordon is not None else "",
    )


def _measured(cluster: Cluster, node: Node) -> Iterable[MeasuredLine]:
    """One query."""
    now, told = state_of(node.labels, node.uid), set()
    for row in measurements(cluster, node.name).order_by("-measured_on", "-id")[:MEASUREMENTS_SHOWN]:
        found = measurement_of(row)
        is_last = row.withdrawn_at is None and row.kind not in told
        if is_last:
            told.add(row.kind)
        yield MeasuredLine(found, is_last, outdated(found.state, now) if is_last else "", row)


def _product(labels: Mapping[str, str]) -> str:
    return next((labels[name] for name in PRODUCT_LABELS.values() if labels.get(name)), "")


def _grouped(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """(prefix, lines "name=value") in order; labels without a prefix come last."""
    groups: dict[str, list[str]] = {}
    for name in sorted(labels):
        prefix, slash, _ = name.partition("/")
        groups.setdefault(prefix if slash else "", []).append(f"{name}={labels[name]}")
    return tuple((prefix, "\n".join(groups[prefix])) for prefix in sorted(groups, key=lambda one: (one == "", one)))


def _layout(node: Node) -> Iterable[LayoutLine]:
    titles = {
        CONFIG: "MIG layout requested",
        STATE: "MIG layout state",
        PLUGIN: "Device plugin configuration",
        AMD_PARTITION: "Partition mode",
    }
    for name, what in titles.items():
        if name in node.labels:
            writer = node.writers.get(name)
            at = writer.at if writer else None
            yield LayoutLine(what, name, node.labels[name], writer.manager if writer else "", at)
