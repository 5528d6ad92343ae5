"""The values of one class that change often: its totals, its nodes by product, and the MIG layout of a node."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import Count, Q
from django.db.models.fields.json import KT

from accounts.core.actor import Actor
from catalog.classes import queries as catalog
from catalog.classes.capacity import queries as capacity_queries
from catalog.classes.capacity.types import Capacity, NodeCapacity
from catalog.discovery.products import PRODUCT_LABELS
from catalog.models import GpuClass
from catalog.pool.queries import delayed_falls, fall_sentences
from cluster.models import MirrorNode
from cluster.reads import queries as mirror
from desk.capacity.totals import ClassFigures, class_figures
from desk.classes.domains import ClassDomains, class_domains, gang_sentence
from desk.nodes.mig_drawing import MigNode, mig_node
from portal.ui.text import first_names, plural
from tenants.members.models import in_teams_of
from tenants.models import Namespace


@dataclass(frozen=True)
class ProductLine:
    """Nodes of the class with the same product. `product`: the label of the nodes; the product of the class for nodes
    without this label; "" for a class without a GPU.
    """

    product: str
    nodes: int
    ready: int
    cordoned: int


@dataclass(frozen=True)
class ClassLive:
    slug: str
    unit: str
    figures: ClassFigures
    products: tuple[ProductLine, ...]
    mig: MigNode | None
    mig_nodes: int
    falls: list[str]
    coming: str
    # "4 of 8 GPUs are on nodes that are cordoned: …", "" if none are.
    cordons: str
    # None: its only level is the host.
    topology: ClassDomains | None

    @property
    def capacity(self) -> Capacity:
        return self.figures.capacity

    @property
    def gangs(self) -> list[str]:
        """The largest gang of each level of its topology, in sentences. None while it is unknown."""
        found = self.topology
        return [gang_sentence(one, self.unit) for one in found.largest] if found and found.domains is not None else []

    @property
    def is_stale(self) -> bool:
        return not self.capacity.is_current

    @property
    def free_cards(self) -> str:
        """Free MIG slices as a number of GPUs. "" for other classes, and if it is unknown."""
        cards = self.figures.cards
        return "" if cards is None else f"{float(cards):.2f}".rstrip("0").rstrip(".")


def class_live(by: Actor, one: GpuClass) -> ClassLive:
    found = class_figures(one.cluster, [one])[one.pk]
    # The nodes are read one by one only if they are needed one by one; otherwise the cost does not depend on their
    # number.
    with_nodes = _is_drawn(one) or one.interface == GpuClass.Interface.NONE
    nodes = capacity_queries.capacities(one.cluster, [one], with_nodes=True)[one.pk].nodes if with_nodes else ()
    return ClassLive(
        slug=one.slug,
        unit=catalog.unit_of(one),
        figures=found,
        products=tuple(_products(one, found.capacity, nodes)),
        mig=_mig(by, one, nodes),
        mig_nodes=len(nodes),
        falls=fall_sentences(delayed_falls([one]).get(one.pk, [])),
        coming=catalog.node_coming_sentence(one),
        cordons=_cordons(one, found.capacity),
        topology=class_domains([one]).get(one.pk),
    )


def _cordons(one: GpuClass, capacity: Capacity) -> str:
    """One query, none while nothing is cordoned. Only of classes whose units nodes report by themselves."""
    if not capacity.cordoned or one.interface != GpuClass.Interface.DEVICE_PLUGIN:
        return ""
    rows = MirrorNode.objects.filter(
        cluster_id=one.cluster_id, ready=True, schedulable=False, record__labels__contains=one.node_labels
    )
    found = [(node, node.allocatable.get(one.resource, 0)) for node in map(mirror.node_of, rows.order_by("name"))]
    lines = [f"{node.name} ({node.cordon.how})" for node, units in found if units and node.cordon is not None]
    if not lines:
        return ""
    units = sum(units for _node, units in found)
    of = plural(capacity.allocatable or 0, catalog.unit_of(one))
    are = "is" if units == 1 else "are"
    return f"{units} of {of} {are} on nodes that are cordoned: {first_names(lines)}."


def _products(one: GpuClass, capacity: Capacity, nodes: Collection[NodeCapacity]) -> list[ProductLine]:
    """Needs one query, or none for a class without a GPU: its nodes are known only from the capacity, which contains
    only usable nodes.
    """
    if not capacity.is_known:
        return []
    if one.interface == GpuClass.Interface.NONE:
        return [ProductLine("", len(nodes), len(nodes), 0)] if nodes else []
    rows = MirrorNode.objects.filter(cluster_id=one.cluster_id, record__labels__contains=one.node_labels)
    if one.interface == GpuClass.Interface.DEVICE_PLUGIN:
        # Nodes with all GPUs in MIG mode also have the labels of whole GPUs, so the capacity decides.
        rows = rows.filter(**{f"record__capacity__{one.resource}__gt": 0})
    counted = (
        rows.order_by()
        .values(product=KT(f"record__labels__{PRODUCT_LABELS.get(one.vendor, 'none')}"))
        .annotate(
            nodes=Count("pk"),
            are_ready=Count("pk", filter=Q(ready=True)),
            are_cordoned=Count("pk", filter=Q(schedulable=False)),
        )
    )
    return [
        ProductLine(row["product"] or one.product, row["nodes"], row["are_ready"], row["are_cordoned"])
        for row in sorted(counted, key=lambda row: (-row["nodes"], row["product"] or ""))
    ]


def _mig(by: Actor, one: GpuClass, nodes: Collection[NodeCapacity]) -> MigNode | None:
    """Returns the MIG layout of the node with the most free units, or None for a class without a layout. Needs four
    queries.
    """
    if not _is_drawn(one) or not nodes:
        return None
    name = max(nodes, key=lambda node: (node.free, node.name)).name
    node = mirror.node_named(one.cluster_id, name)
    if node is None:
        return None
    theirs = Namespace.objects.filter(in_teams_of(by, "tenant__")).values_list("name", flat=True)
    used = mirror.requests_by_node(one.cluster_id, [name])
    yours = mirror.requests_by_node(one.cluster_id, [name], namespaces=theirs)
    return mig_node(node, used=used.get(name, {}), yours=yours.get(name, {}))


def _is_drawn(one: GpuClass) -> bool:
    return one.vendor == "nvidia" and one.partition != "none" and one.interface == GpuClass.Interface.DEVICE_PLUGIN
