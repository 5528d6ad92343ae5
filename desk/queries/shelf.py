"""The classes that one person may know of, what is free, and what their own team has: for every page of the catalog."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from django.utils import timezone

from accounts.actor import Actor
from catalog import life_cycle
from catalog import queries as catalog
from catalog.models import GpuClass
from catalog.needs import Option
from catalog.products import has_fp8
from catalog.queries import Capacity
from cluster import queries as mirror
from cluster.first_nodes import FirstNodes, first_nodes
from cluster.observed import Pod
from desk.queries.figures import Figures, figures
from desk.queries.viewer import Viewer, never_starts, viewer_of
from portal.errors import Refusal
from tenants import queries as tenants
from tenants.models import Namespace
from workloads import queries as workloads
from workloads.queries import launching

NODES_SHOWN = 6


@dataclass(frozen=True)
class Item:
    """One class. Units of the viewer's team: `granted` now, `admitted` and `queued` of its runs, `mine` by node; all 0
    and empty without a team. `never`: why nothing of it can start there, whoever asks.
    """

    gpu_class: GpuClass
    unit: str
    figures: Figures
    granted: int
    admitted: int
    queued: int
    mine: Mapping[str, int]
    nodes: FirstNodes
    never: Refusal | None
    held: str
    retiring: str

    @property
    def capacity(self) -> Capacity:
        return self.figures.capacity

    @property
    def used(self) -> int | None:
        """By pods on nodes; None: nobody knows."""
        return sum(self.mine.values()) if self.capacity.is_known else None

    @property
    def left(self) -> int:
        """Of the grant. What is admitted and on no node yet is as good as used."""
        return max(0, self.granted - max(self.admitted, self.used or 0) - self.queued)

    @property
    def is_shared(self) -> bool:
        return self.gpu_class.sharing != GpuClass.Sharing.NONE


@dataclass(frozen=True)
class Shelf:
    viewer: Viewer
    items: list[Item]
    capacity: Capacity = field(default_factory=Capacity)

    def options(self) -> list[Option]:
        return [_option(item, has_team=self.viewer.tenant is not None) for item in self.items]


def shelf(by: Actor) -> Shelf:
    """By slug. About 20 queries, whatever the number of classes, nodes and pods. `capacity` carries how old it is."""
    cluster = catalog.cluster()
    classes = list(tenants.visible_classes(by, cluster).select_related("successor"))
    found = figures(cluster, classes)
    viewer = viewer_of(by)
    theirs = _Theirs.of(viewer, classes)
    parts = {pk: one.capacity.parts for pk, one in found.items()}
    nodes = first_nodes(cluster.pk, parts, theirs.mine, most=NODES_SHOWN)
    names = {one.pk: one.name for one in classes}
    items = [_item(one, found[one.pk], theirs, nodes.get(one.pk, FirstNodes()), names) for one in classes]
    return Shelf(viewer, items, next((one.capacity for one in found.values()), Capacity()))


@dataclass(frozen=True)
class _Theirs:
    """Of the viewer's team: by class id `granted`, `most` (promised at any instant from now on) and `mine`; by slug
    `admitted` and `queued`.
    """

    granted: Mapping[int, int] = field(default_factory=dict)
    most: Mapping[int, int] = field(default_factory=dict)
    admitted: Mapping[str, int] = field(default_factory=dict)
    queued: Mapping[str, int] = field(default_factory=dict)
    mine: Mapping[int, Mapping[str, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, viewer: Viewer, classes: Collection[GpuClass]) -> _Theirs:
        if viewer.tenant is None or viewer.namespace is None:
            return cls()
        admitted, queued = launching.units_of_runs(viewer.namespace)
        return cls(
            granted=tenants.units_in_force(viewer.tenant.pk, timezone.now()),
            most=workloads.most_promised(viewer.tenant.pk, [one.pk for one in classes]),
            admitted=admitted,
            queued=queued,
            mine=_by_node(viewer.namespace, classes),
        )


def _by_node(namespace: Namespace, classes: Collection[GpuClass]) -> dict[int, dict[str, int]]:
    """Units of the team's pods that are bound and not over, by class id and node. Two queries."""
    pods = [one for one in mirror.pods(namespace.cluster_id, namespace=namespace.name) if one.node and not one.is_over]
    claims = {
        one.name: len(one.record["devices"])
        for one in mirror.objects(namespace.cluster_id, kind="ResourceClaim", namespace=namespace.name)
    }
    found: dict[int, dict[str, int]] = {}
    by_slug = {one.slug: one for one in classes}
    for pod in pods:
        one = by_slug.get(pod.gpu_class)
        if one is not None:
            nodes = found.setdefault(one.pk, {})
            nodes[pod.node] = nodes.get(pod.node, 0) + _units_of(one, pod, claims)
    return found


def _units_of(one: GpuClass, pod: Pod, claims: Mapping[str, int]) -> int:
    if one.interface == GpuClass.Interface.DRA:
        return sum(claims.get(name, 0) for name in pod.claims)
    if one.interface == GpuClass.Interface.NONE:
        return -(-pod.requests.get("cpu", 0) // (one.cpu_per_unit * 1000))
    return pod.requests.get(one.resource, 0)


def _item(one: GpuClass, figures: Figures, theirs: _Theirs, nodes: FirstNodes, known: Mapping[int, str]) -> Item:
    return Item(
        gpu_class=one,
        unit=catalog.unit_of(one),
        figures=figures,
        granted=theirs.granted.get(one.pk, 0),
        admitted=theirs.admitted.get(one.slug, 0),
        queued=theirs.queued.get(one.slug, 0),
        mine=theirs.mine.get(one.pk, {}),
        nodes=nodes,
        never=never_starts(one, theirs.most.get(one.pk, 0)),
        held=life_cycle.hold(one, now=timezone.now()),
        retiring=catalog.retirement(one, known),
    )


def _option(item: Item, *, has_team: bool) -> Option:
    one = item.gpu_class
    return Option(
        slug=one.slug,
        name=one.name,
        axes=catalog.axes_of(one),
        unit=item.unit,
        units_per_workload=one.units_per_workload,
        interconnect=one.interconnect,
        kinds=one.kinds,
        price=one.price_per_unit_hour,
        free=item.capacity.free,
        most_on_one_node=item.capacity.most_on_one_node,
        largest_node=item.capacity.largest_node,
        granted=item.granted if has_team else None,
        left=item.left,
        borrowable=one.borrowing_limit,
        life_cycle=one.life_cycle,
        held=item.held,
        fp8=has_fp8(one.product),
    )
