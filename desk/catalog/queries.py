"""The data of every page of the catalog: classes that one user may see, free units, and the quota of the user's
team.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from django.utils import timezone

from accounts.core.actor import Actor
from catalog.classes import life_cycle
from catalog.classes import queries as catalog
from catalog.classes.capacity.types import Capacity
from catalog.discovery.products import has_fp8, video_engines
from catalog.guide.requirements import ClassOption
from catalog.interconnect.queries import class_interconnects
from catalog.models import GpuClass
from cluster.reads import queries as read_queries
from cluster.reads.top_nodes import TopNodes, top_nodes
from desk.capacity.totals import ClassFigures, class_figures
from desk.classes.viewer import Viewer, never_starts, viewer_of
from portal.core.errors import Refusal
from tenants.class_access import queries as class_access_queries
from tenants.grants import queries as grant_queries
from workloads.forecast import queries as forecast_queries
from workloads.launch import queries as launch_queries

NODES_SHOWN = 6


@dataclass(frozen=True)
class CatalogItem:
    """One class. Units of the viewer's team: `granted` now, `admitted` and `queued` of its runs, `used` by its pods on
    nodes (None: unknown), of these `borrowed`; all 0 without a team. `never`: why no workload on it can start, for any
    user. `closed`: the sentence about a queue or namespace of the team that accepts nothing.
    """

    gpu_class: GpuClass
    unit: str
    figures: ClassFigures
    granted: int
    admitted: int
    queued: int
    used: int | None
    borrowed: int
    nodes: TopNodes
    never: Refusal | None
    held: str
    retiring: str
    closed: str
    # As of ClassOption.
    measured: tuple[str, ...]

    @property
    def capacity(self) -> Capacity:
        return self.figures.capacity

    @property
    def left(self) -> int:
        """Granted units that are left. Units of admitted runs count as used even before a pod is on a node."""
        return max(0, self.granted - max(self.admitted, self.used or 0) - self.queued)

    @property
    def is_shared(self) -> bool:
        return self.gpu_class.sharing != GpuClass.Sharing.NONE


@dataclass(frozen=True)
class CatalogData:
    viewer: Viewer
    items: list[CatalogItem]
    capacity: Capacity = field(default_factory=Capacity)
    storage: Sequence[GpuClass] = ()

    def options(self) -> list[ClassOption]:
        return [_option(item, has_team=self.viewer.tenant is not None) for item in self.items]


def catalog_data(by: Actor) -> CatalogData:
    """Sorted by slug. About 20 queries, whatever the number of classes, nodes and pods. `capacity` has the age of the
    data; `storage` is separate from the items because no workload runs on it.
    """
    cluster = read_queries.current_cluster()
    every = list(class_access_queries.visible_classes(by, cluster).select_related("cluster", "successor"))
    classes = [one for one in every if not one.is_storage]
    found = class_figures(cluster, classes)
    viewer = viewer_of(by)
    theirs = _Theirs.of(viewer, classes)
    parts = {one.slug: found[one.pk].capacity.parts for one in classes}
    nodes = top_nodes(cluster.pk, parts, namespace=theirs.namespace, most=NODES_SHOWN)
    names = {one.pk: one.name for one in classes}
    links = class_interconnects(cluster, classes) or {}
    measured = {pk: tuple(one.sentences) for pk, one in links.items()}
    items = [_item(one, found[one.pk], theirs, nodes[one.slug], names, measured.get(one.pk, ())) for one in classes]
    storage = [one for one in every if one.is_storage]
    return CatalogData(viewer, items, next((one.capacity for one in found.values()), Capacity()), storage)


@dataclass(frozen=True)
class _Theirs:
    """Units of the viewer's team: by class id `granted` and `most` (granted at any instant from now on); by slug
    `admitted` and `queued`. `closed`: as in `TeamLimits`.
    """

    namespace: str = ""
    granted: Mapping[int, int] = field(default_factory=dict)
    most: Mapping[int, int] = field(default_factory=dict)
    admitted: Mapping[str, int] = field(default_factory=dict)
    queued: Mapping[str, int] = field(default_factory=dict)
    closed: str = ""

    @classmethod
    def of(cls, viewer: Viewer, classes: Collection[GpuClass]) -> _Theirs:
        if viewer.tenant is None or viewer.namespace is None:
            return cls()
        admitted, queued = forecast_queries.run_units(viewer.namespace)
        return cls(
            namespace=viewer.namespace.name,
            granted=grant_queries.units_in_force(viewer.tenant.pk, timezone.now()),
            most=launch_queries.peak_grants(viewer.tenant.pk, [one.pk for one in classes]),
            admitted=admitted,
            queued=queued,
            closed=forecast_queries.limits_of(viewer.namespace).closed,
        )


def _item(
    one: GpuClass,
    figures: ClassFigures,
    theirs: _Theirs,
    nodes: TopNodes,
    known: Mapping[int, str],
    measured: tuple[str, ...],
) -> CatalogItem:
    return CatalogItem(
        gpu_class=one,
        unit=catalog.unit_of(one),
        figures=figures,
        granted=theirs.granted.get(one.pk, 0),
        admitted=theirs.admitted.get(one.slug, 0),
        queued=theirs.queued.get(one.slug, 0),
        used=None if figures.used_by is None else figures.used_by.get(theirs.namespace, 0),
        borrowed=figures.borrowed_by.get(theirs.namespace, 0),
        nodes=nodes,
        never=never_starts(one, theirs.most.get(one.pk, 0)),
        held=life_cycle.hold_sentence(one, now=timezone.now()),
        retiring=catalog.retirement_notice(one, known),
        closed=theirs.closed,
        measured=measured,
    )


def _option(item: CatalogItem, *, has_team: bool) -> ClassOption:
    one = item.gpu_class
    decodes, encodes = video_engines(one.product, one.partition)
    return ClassOption(
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
        # The size of a node that is added is not known.
        largest_node=item.capacity.largest_node or (None if one.is_autoscaled else item.capacity.largest_node),
        allocatable=item.capacity.obtainable(one),
        free_by_node=tuple(max(0, node.allocatable - node.used) for node in item.nodes.nodes),
        has_more_nodes=item.nodes.total > len(item.nodes.nodes),
        granted=item.granted if has_team else None,
        left=item.left,
        borrowable=one.borrowing_limit,
        life_cycle=one.life_cycle,
        held=item.held,
        closed=item.closed,
        fp8=has_fp8(one.product),
        decodes=decodes,
        encodes=encodes,
        hours_limit=one.run_hours_limit,
        measured=item.measured,
    )
