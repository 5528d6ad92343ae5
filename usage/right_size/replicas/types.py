"""What was measured of the GPUs that a time-sliced class shares, and the proposal that follows. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SharedMemoryUse:
    """Of a time-sliced class, in `period_days`. `days` with a measured hour and `hours` that were measured, of any of
    its GPUs: an exporter gives the figures of a shared GPU to one of the pods that share it. `memory_percent_max`: the
    fullest GPU in its fullest minute; None: not measured. `full_days`, `full_hours`: those in which one was full.

    `failed_runs` of `failed_workloads` ended because GPU memory was full, of `runs` that started and ended.
    `units`: allocatable now; None: unknown. `promised`: units allocated to teams now.
    """

    replicas: int
    period_days: int
    days: int
    hours: int
    memory_percent_max: float | None
    full_days: int
    full_hours: int
    runs: int
    failed_runs: int
    failed_workloads: int
    units: int | None
    promised: int


@dataclass(frozen=True)
class FewerReplicas:
    """`why`: what was measured; `effect`: what it would change. Sentences."""

    replicas: int
    fewer: int
    why: str
    effect: str
