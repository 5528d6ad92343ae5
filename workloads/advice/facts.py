"""The facts that the suggested actions of one run are made of, and how many units of a class would start now. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from workloads.advice.class_context import ClassContext
from workloads.forecast.availability import AvailabilityFigures


@dataclass(frozen=True)
class ClassOption:
    """A class for this team now. `figures`: for a new run of it. `takes`: it accepts this workload, its image and sizes
    included; `takes_fewer`: also with one unit. `most_units`: that one worker can ever have; `allocatable`: of all its
    nodes, None: unknown. `memory_gib`: of one unit.
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
    """A run of the team on the same class. `on`: its units by node. `idle_since` None: in use, or not known."""

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
    """Around one run of `workers` with `each` units. `own`: its class, None where the team has no access to it any
    more. `ahead`: units of each run of the team that is ahead. `free_on`: units of its class by node. `ending`: the
    most units of its class that terminating pods still use on one node. `may_change`, `may_request`: what this person
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
        """Whether `availability_sentence` is "starts now" for all of it."""
        if self.workers == 1:
            return units_that_fit_now(figures) >= self.each
        return figures.workers_now(self.each) >= self.workers


def units_that_fit_now(figures: AvailabilityFigures) -> int:
    """The most units for which `availability_sentence` is "starts now"."""
    if figures.held or figures.leaving or figures.on_one_node is None:
        return 0
    taken = figures.taken_first
    return max(0, min(figures.granted - figures.used - taken, figures.on_one_node - taken))
