"""What was seen of the nodes and devices of one run's class, and what each of its pods requests from a node. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from cluster.manifests.node_removal.cordons import Cordon


@dataclass(frozen=True)
class ClassNode:
    """A node with the labels of the class. `kept`: it has a taint that the run's pods do not tolerate. Units of
    `capacity` that are not `allocatable` are unhealthy; `used`: units used by any pod, `ending`: those of terminating
    pods. `cpu_free` in cores, `memory_free_gib`.
    """

    name: str
    ready: bool = True
    schedulable: bool = True
    kept: bool = False
    capacity: int = 0
    allocatable: int = 0
    used: int = 0
    ending: int = 0
    cpu_free: float = 0
    memory_free_gib: float = 0
    # The taint that keeps pods away, as kubectl writes it; "" if none does.
    taint: str = ""
    cordon: Cordon | None = None
    # Its values of the levels of the run's topology, widest first; None: it lacks the label.
    places: tuple[str | None, ...] = ()

    @property
    def is_open(self) -> bool:
        return self.ready and self.schedulable and not self.kept

    @property
    def free(self) -> int:
        return max(0, self.allocatable - self.used)


@dataclass(frozen=True)
class SizedDevices:
    """The devices with at least `gib` GiB of memory, of the `in_all` devices of a run's class on ready nodes: how many
    there are, are used, are free on nodes that take pods, and are free on one of them. `units` are per pod.
    """

    gib: int
    units: int
    in_all: int
    there: int
    used: int
    free: int
    most_on_one_node: int


@dataclass(frozen=True)
class ClassNodes:
    """All nodes of the class, without the `elsewhere` many that cannot mount the run's volume; `units` of `resource`,
    `cpu` and `memory_gib` are per pod. `levels` of the run's topology, widest first; all its pods have to be in one
    domain of `level`, "" for none.
    """

    nodes: tuple[ClassNode, ...]
    units: int
    cpu: int
    memory_gib: int
    resource: str = "its resource"
    elsewhere: int = 0
    levels: tuple[str, ...] = ()
    level: str = ""

    @property
    def best_domain(self) -> tuple[ClassNode, ...]:
        """The nodes of the domain of `level` in which most of the run's pods fit now."""
        return tuple(max(self._domains, key=lambda nodes: sum(map(self.fits, nodes)), default=()))

    @property
    def most_in_one_domain(self) -> int:
        """How many of the run's pods the units of one domain of `level` are enough for, if none are in use."""
        return max((sum(node.capacity // self.units for node in nodes) for nodes in self._domains), default=0)

    @property
    def _domains(self) -> list[list[ClassNode]]:
        """Of `level`. Kueue ignores nodes that lack the label of a level."""
        depth = self.levels.index(self.level) + 1
        found: dict[tuple[str | None, ...], list[ClassNode]] = {}
        for node in self.nodes:
            if None not in node.places:
                found.setdefault(node.places[:depth], []).append(node)
        return list(found.values())

    @property
    def open(self) -> tuple[ClassNode, ...]:
        return tuple(node for node in self.nodes if node.is_open)

    @property
    def with_units(self) -> tuple[ClassNode, ...]:
        """Open nodes that have enough free units for a pod."""
        return tuple(node for node in self.open if node.free >= self.units)

    @property
    def closed_with_units(self) -> tuple[ClassNode, ...]:
        """Nodes that others cordoned, and that otherwise have enough free units for a pod."""
        found = (node for node in self.nodes if node.ready and not node.kept and node.free >= self.units)
        return tuple(node for node in found if node.cordon is not None and not node.cordon.is_maintenance)

    def fits(self, node: ClassNode) -> int:
        """Returns how many of the run's pods fit on the node now."""
        if not node.is_open:
            return 0
        asked = ((node.free, self.units), (node.cpu_free, self.cpu), (node.memory_free_gib, self.memory_gib))
        return max(0, int(min(free // each for free, each in asked if each)))

    @property
    def ending_on(self) -> ClassNode | None:
        """Returns the open node with the most units among those that fit a pod once their terminating pods are gone."""
        found = [one for one in self.open if one.ending and one.free < self.units <= one.free + one.ending]
        return max(found, key=lambda one: one.free + one.ending, default=None)
