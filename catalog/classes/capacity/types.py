"""Capacity of a class and of its nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from catalog.models import GpuClass
from cluster.reads.units import ResourceUnits


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

    `allocatable`: on ready nodes, cordoned ones too: they come back. `used`: of pods bound to a node and not finished,
    whoever made them. `free`: allocatable on ready, schedulable nodes less used. `most_on_one_node`: free now;
    `largest_node`: allocatable, what a workload can ever have. `unhealthy`: what ready nodes have and do not offer;
    `cordoned`: allocatable on ready nodes that take no new pods of the class. `nodes`: only where they were asked for.
    """

    allocatable: int | None = None
    used: int | None = None
    free: int | None = None
    most_on_one_node: int | None = None
    largest_node: int | None = None
    unhealthy: int | None = None
    cordoned: int | None = None
    nodes: tuple[NodeCapacity, ...] = ()
    # What was summed, so that classes that select the same units are not counted twice where they are added up.
    parts: tuple[ResourceUnits, ...] = field(default=(), repr=False)
    as_of: datetime | None = None
    is_current: bool = False
    problem: str = ""

    @property
    def is_known(self) -> bool:
        return self.allocatable is not None

    def limit(self, gpu_class: GpuClass) -> int | None:
        """Allocation limit in units: staff's limit, else what there is; None: unknown."""
        return self.allocatable if gpu_class.promise_limit is None else gpu_class.promise_limit
