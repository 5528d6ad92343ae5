"""The facts behind the suggested actions of one run, and how many units of a class would start now. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from workloads.advice.class_context import ClassContext
from workloads.forecast.availability import AvailabilityFigures


@dataclass(frozen=True)
class ClassOption:
    """A class as this team can use it now. `figures`: for a new run on it. `takes`: it accepts this workload with its
    image and sizes; `takes_fewer`: it accepts the workload with one unit. `most_units`: the most that one worker can
    ever have; `allocatable`: units of all its nodes, None: unknown. `memory_gib`: per unit.
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
    memory_gib: int = 0


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
    the most units of its class that terminating pods still use on one node. `may_change`, `may_request`: what this user
    may do.
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
    around: ClassContext | None = None
    may_change: bool = False
    may_request: bool = False

    @property
    def units(self) -> int:
        return self.each * self.workers

    def starts_on(self, figures: AvailabilityFigures) -> bool:
        """Whether `availability_sentence` is "starts now" for all units of the run."""
        if self.workers == 1:
            return units_that_fit_now(figures) >= self.each
        return figures.workers_now(self.each) >= self.workers


def units_that_fit_now(figures: AvailabilityFigures) -> int:
    """Returns the most units for which `availability_sentence` is "starts now"."""
    if figures.held or figures.leaving or figures.on_one_node is None:
        return 0
    taken = figures.taken_first
    return max(0, min(figures.granted - figures.used - taken, figures.on_one_node - taken))
