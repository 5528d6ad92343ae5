"""A set of nodes, what is needed of it by class and profile, and a proposal. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from catalog.discovery.mig_profiles import MigCard, MigProfile
from catalog.mig.sets.types import WHOLE, Need, NodePlan, SetPlan


@dataclass(frozen=True)
class LeftOut:
    """A node with GPUs of the product whose layout cannot be planned together with others now; `reason`: a sentence."""

    name: str
    reason: str


@dataclass(frozen=True)
class PlannedNode:
    """`offers`: instances now by profile. `selectable`: labels by which a class may choose nodes of one product."""

    name: str
    gpus: int
    offers: Mapping[str, int]
    selectable: Mapping[str, str]


@dataclass(frozen=True)
class MigSet:
    """Nodes with the same GPUs and MIG strategy; with strategy single also with as many GPUs."""

    key: str
    product: str
    card: MigCard
    profiles: Mapping[str, MigProfile]
    is_single: bool
    nodes: tuple[PlannedNode, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def title(self) -> str:
        each = f", {self.nodes[0].gpus} GPUs each" if self.is_single and self.nodes else ""
        return f"{self.product}, strategy {'single' if self.is_single else 'mixed'}{each}"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.nodes)

    @property
    def ordered_profiles(self) -> tuple[str, ...]:
        """By size; GPUs without MIG last."""
        by_size = sorted(self.profiles, key=lambda one: (self.profiles[one].memory, self.profiles[one].compute, one))
        return (*by_size, WHOLE)


@dataclass(frozen=True)
class ClassNeed:
    """Units of one class. `on`: nodes of the set that it can use; `is_of_layout`: only while they have their present
    layout, because it chooses nodes by the name of that. `elsewhere`: units on all other nodes. `granted`: the most
    that is granted at one time from now on. `requested`: more, by pending requests. `queued` and `used` None: unknown.
    """

    slug: str
    name: str
    profile: str
    on: frozenset[str]
    is_of_layout: bool
    elsewhere: int
    granted: int
    requested: int
    queued: int | None
    used: int | None


@dataclass(frozen=True)
class ProfileLine:
    """Instances of one profile, for all classes of it together. `now`: on the nodes of the set."""

    profile: str
    now: int
    needs: tuple[ClassNeed, ...]

    @property
    def elsewhere(self) -> int:
        return sum(one.elsewhere for one in self.needs)

    @property
    def granted(self) -> int:
        return sum(one.granted for one in self.needs)

    @property
    def requested(self) -> int:
        return sum(one.requested for one in self.needs)

    @property
    def queued(self) -> int | None:
        return _sum([one.queued for one in self.needs])

    @property
    def used(self) -> int | None:
        return _sum([one.used for one in self.needs])

    @property
    def proposed(self) -> int:
        """What the set is asked for unless somebody says otherwise. Queued units are often granted or requested ones,
        so the larger of both sums counts; what is unknown counts as nothing.
        """
        return sum(
            max(0, max(one.granted + one.requested, (one.used or 0) + (one.queued or 0)) - one.elsewhere)
            for one in self.needs
        )

    @property
    def floor(self) -> int:
        """Granted units that no other node has."""
        return sum(max(0, one.granted - one.elsewhere) for one in self.needs)


@dataclass(frozen=True)
class Broken:
    """A class of which fewer units would exist than are granted; `now` as many exist. `others` share its units, and
    `granted` is the sum of all.
    """

    need: ClassNeed
    granted: int
    others: tuple[str, ...]
    now: int
    then: int


@dataclass(frozen=True)
class MovedRun:
    """A run on nodes that change. `ends_at` None: it has no time limit."""

    team: str
    team_slug: str
    name: str
    href: str
    person: str
    ends_at: datetime | None
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class SetMaintenance:
    """One maintenance. `config`: name of the layout. `devices`: of each node afterwards, by resource. `parted`: the
    layout for mig-parted. `is_named`: the portal can add it. `short`: granted instances missing meanwhile, by profile.
    """

    nodes: tuple[str, ...]
    groups: Sequence[tuple[Mapping[str, int], int]]
    config: str
    is_named: bool
    devices: Mapping[str, int]
    parted: str
    short: Mapping[str, int]
    starts_at: datetime
    ends_at: datetime


@dataclass(frozen=True)
class Proposal:
    """`others`: pods outside the portal on nodes that change. `is_known` False: without current updates of nodes and
    pods, so that there may be other runs.
    """

    plan: SetPlan
    broken: tuple[Broken, ...]
    runs: tuple[MovedRun, ...]
    others: tuple[str, ...]
    steps: tuple[SetMaintenance, ...]
    is_known: bool


def need_of(lines: Sequence[ProfileLine], wanted: Mapping[str, int]) -> Need:
    """With all that is granted and that no other node has."""
    return Need(dict(wanted), {line.profile: line.floor for line in lines if line.floor})


def broken_classes(lines: Sequence[ProfileLine], nodes: Sequence[NodePlan]) -> tuple[Broken, ...]:
    """Classes that choose the same nodes share their units: they are looked at together."""
    found = []
    for line in lines:
        for need in line.needs:
            alike = [one for one in line.needs if (one.on, one.is_of_layout) == (need.on, need.is_of_layout)]
            theirs = [one for one in nodes if one.node.name in need.on]
            left = [one for one in theirs if not (need.is_of_layout and one.is_changed)]
            now = need.elsewhere + sum(one.node.offers.get(line.profile, 0) for one in theirs)
            then = need.elsewhere + sum(one.offers.get(line.profile, 0) for one in left)
            granted = sum(one.granted for one in alike)
            if then < granted and need.granted:
                others = tuple(one.name for one in alike if one is not need and one.granted)
                found.append(Broken(need, granted, others, now, then))
    return tuple(found)


def _sum(numbers: Sequence[int | None]) -> int | None:
    """None if one is unknown."""
    known = [one for one in numbers if one is not None]
    return sum(known) if len(known) == len(numbers) else None
