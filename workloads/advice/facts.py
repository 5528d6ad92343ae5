"""The facts behind the suggested actions of one run, and how many units of a class would start now. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from workloads.advice.class_context import ClassContext
from workloads.forecast.availability import AvailabilityFigures


@dataclass(frozen=True)
class ClassOption:
    """A class as this team can use it now. `figures`: for a new run on it. `takes`: it accepts workloads of this kind;
    `takes_fewer`: it accepts the workload with one unit; `takes_units`: the most units of each worker with which it
    accepts the workload with its image and sizes, but not more than the run has. `most_units`: the most that one
    worker can ever have; `allocatable`: units of all its nodes, None: unknown. Per unit: `cpu`, `memory_gib`, and
    `gpu_memory_mib`, 0 if unknown. `is_less_isolated`: other workloads share a GPU, unlike on the run's own class.
    """

    slug: str
    name: str
    figures: AvailabilityFigures
    takes: bool = True
    takes_fewer: bool = True
    most_units: int = 10_000
    allocatable: int | None = None
    is_smaller: bool = False
    asks_terms: bool = False
    cpu: int = 0
    memory_gib: int = 0
    gpu_memory_mib: int = 0
    takes_units: int = 0
    is_less_isolated: bool = False


@dataclass(frozen=True)
class OtherRun:
    """A run of the team on the same class. `on`: its units by node. `idle_since` None: in use, or unknown."""

    name: str
    who: str
    on: Mapping[str, int]
    since: datetime
    may_stop: bool
    idle_since: datetime | None = None

    @property
    def units(self) -> int:
        return sum(self.on.values())


@dataclass(frozen=True)
class AdviceFacts:
    """Facts around one run of `workers` with `each` units. `own`: its class, None if the team no longer has access to
    it. `ahead`: units of each of the team's runs that are ahead. `free_on`: free units of its class by node. `ending`:
    the most units of its class that terminating pods still use on one node. `gpu_memory_mib`: of one unit of its
    class, `shared_memory_gib`: of each worker, 0 if unknown. `level`: required for all its workers, so that `own`
    counts only the nodes of the best domain; `anywhere`: the figures of its class without the level. `may_change`,
    `may_request`: what this user may do.
    """

    name: str
    kind: str
    each: int
    own: ClassOption | None
    workers: int = 1
    options: tuple[ClassOption, ...] = ()
    others: tuple[OtherRun, ...] = ()
    ahead: tuple[int, ...] = ()
    free_on: Mapping[str, int] = field(default_factory=dict)
    ending: int = 0
    gpu_memory_mib: int = 0
    shared_memory_gib: int = 0
    around: ClassContext | None = None
    level: str = ""
    anywhere: AvailabilityFigures | None = None
    may_change: bool = False
    may_request: bool = False

    @property
    def units(self) -> int:
        return self.each * self.workers

    def starts_on(self, figures: AvailabilityFigures, each: int = 0) -> bool:
        """Whether `availability_sentence` is "starts now" for all units of the run; or with so many for each worker."""
        each = each or self.each
        return figures.units_now >= each if self.workers == 1 else figures.workers_now(each) >= self.workers
