"""The units of a class in each domain of its topology: in each rack, block or NVLink domain, and on its nodes.

A domain is what Kueue places a gang in. Nodes that lack the label of a level are in no domain: Kueue ignores them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from catalog.classes.topology import HOST, ClassTopology, topologies_of
from catalog.models import GpuClass
from cluster.reads import queries as mirror
from portal.ui.text import plural
from workloads.core.class_nodes import ClassNode, ClassNodes
from workloads.status.observations.node_capacity import PodDemand, nodes_of

# The page of a class with more nodes lists only what is above them.
NODES_SHOWN = 100


@dataclass(frozen=True)
class Domain:
    """`values` of the labels of its level and of all above it, widest first: racks of two zones may have one name.

    `units`: what its nodes offer; `used` by pods; `free` on nodes that accept pods. The other ones are on nodes that
    accept none. `workers`: how many workers with one unit each, and the CPU and memory of the class, fit there now.
    """

    level: str
    values: tuple[str, ...]
    nodes: int
    units: int
    used: int
    free: int
    workers: int

    @property
    def is_host(self) -> bool:
        return self.level == HOST

    @property
    def closed(self) -> int:
        return max(0, self.units - self.used - self.free)


@dataclass(frozen=True)
class LargestGang:
    """How many workers with one unit each start in one domain of the level now, as far as nodes decide, and in which
    one; none if nothing fits.
    """

    level: str
    workers: int
    values: tuple[str, ...]


@dataclass(frozen=True)
class ClassDomains:
    """Of a class with a topology of its own. `domains`: each followed by those in it; None: unknown."""

    topology: ClassTopology
    domains: tuple[Domain, ...] | None = None

    @property
    def above_hosts(self) -> tuple[Domain, ...] | None:
        return None if self.domains is None else tuple(one for one in self.domains if not one.is_host)

    @property
    def shown(self) -> tuple[Domain, ...]:
        """For the page: without nodes if there are many."""
        found = self.domains or ()
        return found if sum(one.is_host for one in found) <= NODES_SHOWN else self.above_hosts or ()

    @property
    def hides_nodes(self) -> bool:
        return len(self.shown) < len(self.domains or ())

    @property
    def largest(self) -> tuple[LargestGang, ...]:
        """By level, widest first, without the host: one node has its own figure."""
        return tuple(_largest(level, self.domains or ()) for level in self.topology.levels or () if level != HOST)


def class_domains(
    classes: Collection[GpuClass], topologies: Mapping[int, ClassTopology] | None = None
) -> dict[int, ClassDomains]:
    """By class id, without classes whose only level is the host. `topologies` of the classes, if they were read.

    Two queries besides those of `topologies_of`, and none if no class has a topology of its own.
    """
    found = topologies_of(classes) if topologies is None else topologies
    named = [one for one in classes if one.pk in found]
    places = {one.pk: place for one in named if (place := _place(one, found[one.pk])) is not None}
    if not places or not mirror.is_known(named[0].cluster_id, "Pod"):
        return {one.pk: ClassDomains(found[one.pk]) for one in named}
    nodes = nodes_of(named[0].cluster_id, places)
    return {
        one.pk: ClassDomains(found[one.pk], domains_of(nodes[one.pk]) if one.pk in nodes else None) for one in named
    }


def domains_of(seen: ClassNodes) -> tuple[Domain, ...]:
    """Pure. By name, each followed by the domains in it."""
    inside: dict[tuple[str, ...], list[ClassNode]] = {}
    for node in seen.nodes:
        if None not in node.places:
            values = tuple(place or "" for place in node.places)
            for depth in range(len(values)):
                inside.setdefault(values[: depth + 1], []).append(node)
    return tuple(_domain(seen, values, inside[values]) for values in sorted(inside))


def gang_sentence(found: LargestGang, unit: str) -> str:
    if not found.workers:
        return f"No worker with 1 {unit} fits in any {found.level} now."
    workers = plural(found.workers, "worker")
    return f"Largest gang that fits in one {found.level} now: {workers} with 1 {unit} each, in {found.values[-1]}."


def _place(one: GpuClass, topology: ClassTopology) -> PodDemand | None:
    """None: its levels are unknown."""
    place = PodDemand.of_class(one) if topology.levels else None
    return replace(place, levels=topology.levels) if place is not None and topology.levels else None


def _domain(seen: ClassNodes, values: tuple[str, ...], nodes: Collection[ClassNode]) -> Domain:
    return Domain(
        level=seen.levels[len(values) - 1],
        values=values,
        nodes=len(nodes),
        units=sum(node.allocatable for node in nodes),
        used=sum(node.used for node in nodes),
        free=sum(node.free for node in nodes if node.is_open),
        workers=sum(map(seen.fits, nodes)),
    )


def _largest(level: str, domains: Collection[Domain]) -> LargestGang:
    there = [one for one in domains if one.level == level]
    best = max(there, key=lambda one: one.workers, default=None)
    return LargestGang(level, best.workers, best.values) if best and best.workers else LargestGang(level, 0, ())
