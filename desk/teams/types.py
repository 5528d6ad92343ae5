"""A team as staff see it in the list of teams. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

ACTIVE, TRIAL, PROVISIONING, STUCK = "active", "trial", "provisioning", "stuck"
SUSPENDED, CLOSING, CLOSED, NO_NAMESPACE = "suspended", "closing", "closed", "no_namespace"
TEAM_STATES = (ACTIVE, TRIAL, PROVISIONING, STUCK, SUSPENDED, CLOSING, CLOSED, NO_NAMESPACE)
IDLE_DAYS_MAX = 3650


@dataclass(frozen=True)
class TeamFilter:
    """`gpu_class`: id of a class of which the team has units in force. `idle_days`: no activity for so long; None: any.
    `sort`: a name of `desk.teams.sql.SORTS`.
    """

    text: str = ""
    state: str = ""
    gpu_class: int | None = None
    idle_days: int | None = None
    sort: str = "team"


@dataclass(frozen=True)
class ClassUse:
    """Units of one class. `used`: None if unknown. `borrowed`: in use beyond the quota and beyond units in a grace
    period. `is_gpu`: whether its units are GPUs or parts of them, each worth `weight`.
    """

    slug: str
    name: str
    unit: str
    quota: int
    used: int | None
    borrowed: int
    is_shared: bool
    is_gpu: bool
    weight: Fraction


@dataclass(frozen=True)
class GpuSum:
    """GPU equivalents. `used`: None if unknown."""

    quota: Fraction
    used: Fraction | None


@dataclass(frozen=True)
class TeamOwner:
    name: str
    email: str


@dataclass(frozen=True)
class TeamListRow:
    """`is_busy`: it has queued or running workloads now. `last_activity_at`: of its runs and of people's actions in it;
    None: none yet. `problem`: why its last reconcile failed, "" otherwise. `out_of_sync`: number of its namespace's
    objects that are rejected, have a name conflict or drifted.
    """

    slug: str
    name: str
    state: str
    created_at: datetime
    is_busy: bool
    last_activity_at: datetime | None
    next_expiry_at: datetime | None
    problem: str
    owners: tuple[TeamOwner, ...]
    uses: tuple[ClassUse, ...]
    queued_runs: int
    out_of_sync: int

    @property
    def exclusive(self) -> GpuSum:
        return _gpus(one for one in self.uses if not one.is_shared)

    @property
    def shared(self) -> GpuSum:
        return _gpus(one for one in self.uses if one.is_shared)


def _gpus(uses: Iterable[ClassUse]) -> GpuSum:
    found = [one for one in uses if one.is_gpu]
    used = [None if one.used is None else one.weight * one.used for one in found]
    known = [one for one in used if one is not None]
    return GpuSum(
        quota=sum((one.weight * one.quota for one in found), Fraction(0)),
        used=sum(known, Fraction(0)) if len(known) == len(used) else None,
    )
