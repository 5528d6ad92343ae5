"""A class's remaining commitments. Grants and runs belong to higher apps, which register functions to read them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from accounts.models import User
from catalog.classes.policy import ClassCommitments
from catalog.models import GpuClass


@dataclass(frozen=True)
class GrantedTotal:
    """Grants of one class that have not ended, including later ones. `until`: when the last of them ends."""

    teams: int
    units: int
    until: datetime | None


_granted: list[Callable[[GpuClass], GrantedTotal]] = []
_owners: list[Callable[[GpuClass], list[User]]] = []
_unfinished: list[Callable[[GpuClass], int]] = []


def register_grants(granted: Callable[[GpuClass], GrantedTotal], owners: Callable[[GpuClass], list[User]]) -> None:
    """`granted` sums the grants of a class; `owners` are the owners of the teams that have them."""
    _granted[:], _owners[:] = [granted], [owners]


def register_runs(unfinished: Callable[[GpuClass], int]) -> None:
    """`unfinished` counts the runs of a class that have not ended."""
    _unfinished[:] = [unfinished]


def commitments_of(gpu_class: GpuClass) -> ClassCommitments:
    """Fails if no reader is registered: the commitments are unknown then, which is not the same as none."""
    (granted,), (unfinished,) = _granted, _unfinished
    found = granted(gpu_class)
    unit = "GiB" if gpu_class.is_storage else "unit"
    return ClassCommitments(found.teams, found.units, found.until, unfinished(gpu_class), unit)


def holder_owners(gpu_class: GpuClass) -> list[User]:
    """Returns owners of the teams that have units of the class now or later."""
    (owners,) = _owners
    return owners(gpu_class)
