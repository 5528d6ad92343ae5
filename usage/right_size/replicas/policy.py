"""What was measured of the memory of shared GPUs → fewer replicas. Pure.

Time-slicing divides the time of a GPU and not its memory: what one workload takes is missing for the others. How much
more they would have taken cannot be measured, so half of the replicas is proposed and not a computed number.
"""

from __future__ import annotations

from portal.ui.text import plural
from usage.right_size.replicas.types import FewerReplicas, SharedMemoryUse

FULL_PERCENT = 95
DAYS_LEAST, HOURS_LEAST = 7, 24
# One full day can be a single program. One workload that runs out of memory may need more than a whole GPU has.
FULL_DAYS_LEAST, FAILED_WORKLOADS_LEAST = 2, 2


def fewer_replicas(use: SharedMemoryUse) -> FewerReplicas | None:
    if use.replicas < 2:
        return None
    is_measured = use.days >= DAYS_LEAST and use.hours >= HOURS_LEAST and use.memory_percent_max is not None
    is_full = is_measured and use.full_days >= FULL_DAYS_LEAST
    is_failing = use.failed_workloads >= FAILED_WORKLOADS_LEAST
    if not is_full and not is_failing:
        return None
    fewer = use.replicas // 2
    why = [_memory(use, use.memory_percent_max)] if is_full and use.memory_percent_max is not None else []
    if use.failed_runs:
        why.append(
            f"{use.failed_runs} of {plural(use.runs, 'run')}, of {plural(use.failed_workloads, 'workload')}, ended "
            f"because GPU memory was full, in {use.period_days} days."
        )
    return FewerReplicas(use.replicas, fewer, " ".join(why), _effect(use, fewer))


def _memory(use: SharedMemoryUse, percent: float) -> str:
    return (
        f"The memory of a GPU was up to {int(percent)} % full, and at least {FULL_PERCENT} % in "
        f"{plural(use.full_hours, 'hour')} on {plural(use.full_days, 'day')}, of {plural(use.hours, 'measured hour')} "
        f"on {plural(use.days, 'day')}."
    )


def _effect(use: SharedMemoryUse, fewer: int) -> str:
    others = fewer - 1
    beside = f"with at most {plural(others, 'other')}" if others else "with no other"
    said = f"A workload would share the memory of its GPU {beside} instead of {use.replicas - 1}."
    if use.units is None:
        return f"{said} How many units the class would have is unknown: the cluster was not read."
    units = use.units * fewer // use.replicas
    said += f" The class would have {plural(units, 'unit')} instead of {use.units}; {use.promised} are allocated"
    return f"{said} to teams, {use.promised - units} too many." if use.promised > units else f"{said} to teams."
