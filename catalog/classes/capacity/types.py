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
    """Units of a class, as the mirror shows them. All figures None: unknown.

    `allocatable`: on ready nodes, including cordoned ones, because they come back. `used`: of all pods bound to a node
    and not finished. `free`: allocatable on ready, schedulable nodes less used. `most_on_one_node`: free now;
    `largest_node`: allocatable, the most that one workload can ever have. `unhealthy`: units that ready nodes have and
    do not offer; `cordoned`: allocatable on ready nodes that take no new pods of the class. `nodes`: only if requested.
    """

    allocatable: int | None = None
    used: int | None = None
    free: int | None = None
    most_on_one_node: int | None = None
    largest_node: int | None = None
    unhealthy: int | None = None
    cordoned: int | None = None
    nodes: tuple[NodeCapacity, ...] = ()
    # The summed parts, so that sums over classes that select the same units count them once.
    parts: tuple[ResourceUnits, ...] = field(default=(), repr=False)
    as_of: datetime | None = None
    is_current: bool = False
    problem: str = ""

    @property
    def is_known(self) -> bool:
        return self.allocatable is not None

    def obtainable(self, gpu_class: GpuClass) -> int | None:
        """Units of the nodes that are there, or up to the maximum of an autoscaler; None: unknown."""
        return None if self.allocatable is None else max(self.allocatable, gpu_class.max_units or 0)

    def limit(self, gpu_class: GpuClass) -> int | None:
        """Allocation limit in units: staff's limit, else the obtainable units; None: unknown."""
        return self.obtainable(gpu_class) if gpu_class.promise_limit is None else gpu_class.promise_limit
