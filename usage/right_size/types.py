"""What was measured of a workload, the sizes of units, and what is suggested. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from portal.core.errors import Refusal


@dataclass(frozen=True)
class MeasuredUse:
    """Of all runs of a workload in the period, each with `units` GPUs or slices. `days` with a measured minute, `hours`
    of measured minutes. Memory is that of the fullest unit, in MiB and in percent of it; None: not measured.
    `activity_percent_max`: the busiest unit in its busiest minute.
    """

    units: int
    days: int
    hours: float
    busy_units_max: int
    activity_percent_max: float
    memory_mib_max: float | None
    memory_percent_max: float | None
    is_shared: bool = False


@dataclass(frozen=True)
class UnitSize:
    """One unit of a class. `share`: of a GPU, 1 for a whole one. `memory_mib`, `free_units` None: unknown.
    `usable_units`: the most that a workload of the team can have by quota and borrowing.
    """

    slug: str
    name: str
    product: str
    share: float
    memory_mib: int | None
    free_units: int | None
    is_slice: bool
    usable_units: int


@dataclass(frozen=True)
class SizeAdvice:
    """`why`: what was measured; `suggestion`: what to launch instead, with that class and number of units.

    `needs_quota`: the team has to request quota for it first; `request_refusal`: why this person may not.
    """

    suggestion: str
    why: str
    gpu_class: str
    units: int
    needs_quota: bool = False
    request_refusal: Refusal | None = None
