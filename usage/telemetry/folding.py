"""Measured devices → minutes of runs → hours. Pure.

The name of a pod says of which Job it is, and the allocation interval which run had that Job at that minute. So
minutes can be read later, when neither the pod nor its row in the mirror exists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from usage.telemetry.types import BUSY_PERCENT, MINUTE, Series, bit_of, hour_of

UTILISATION, ENGINE, SHARED = "utilisation", "engine", "shared"


@dataclass(frozen=True)
class Holder:
    """A run that held `units` from `since` until `until`. `is_indexed`: its pods have an index in their names.
    `measure`: what is measured of its class.
    """

    run_id: int
    namespace_id: int
    gpu_class_id: int
    measure: str
    units: int
    is_indexed: bool
    since: datetime
    until: datetime


@dataclass(slots=True)
class DeviceMinute:
    """Of one device in one minute; None: not measured."""

    utilisation: float | None = None
    engine: float | None = None
    memory_used: float | None = None
    memory_free: float | None = None
    power: float | None = None


@dataclass
class HourFigures:
    """The columns of usage.telemetry.models.RunHour for minutes that were not counted before."""

    holder: Holder
    measure: str
    seen_minutes: int = 0
    busy_minutes: int = 0
    activity_sum: float = 0.0
    activity_max: float = 0.0
    activity_last: float = 0.0
    busy_devices_max: int = 0
    memory_samples: int = 0
    memory_sum_mib: float = 0.0
    memory_max_mib: float = 0.0
    memory_last_mib: float | None = None
    memory_total_mib: float = 0.0
    memory_share_max: float = 0.0
    power_samples: int = 0
    power_sum_w: float = 0.0
    power_last_w: float | None = None


# (namespace, name of the Job) → its runs. A name can be used again after a workload was deleted.
Holders = Mapping[tuple[str, str], list[Holder]]
RunMinute = tuple[int, datetime]


@dataclass
class Measured:
    """Devices of each run and minute. One field is added after another, so that no answer is kept."""

    holders: dict[int, Holder] = field(default_factory=dict)
    minutes: dict[RunMinute, dict[tuple[str, str, str], DeviceMinute]] = field(default_factory=dict)

    def add(self, name: str, answered: Iterable[Series], holders: Holders) -> None:
        """`name`: a field of DeviceMinute. A value at the end of a minute is of that minute."""
        for series in answered:
            namespace, pod = series.labels.get("namespace", ""), series.labels.get("pod", "")
            candidates = list(holders_of(namespace, pod, holders))
            if not candidates:
                continue
            device = (series.labels.get("pod", ""), series.labels.get("UUID", ""), series.labels.get("GPU_I_ID", ""))
            for moment, value in series.points:
                minute = datetime.fromtimestamp(moment, UTC) - MINUTE
                then = [one for one in candidates if one.since <= minute and minute + MINUTE <= one.until]
                # A name that two runs may have given is of neither.
                if len(then) == 1:
                    [holder] = then
                    self.holders[holder.run_id] = holder
                    devices = self.minutes.setdefault((holder.run_id, minute), {})
                    setattr(devices.setdefault(device, DeviceMinute()), name, value)


def holders_of(namespace: str, pod: str, holders: Holders) -> Iterator[Holder]:
    """The runs whose pod may have this name."""
    job, _, _suffix = pod.rpartition("-")
    yield from (one for one in holders.get((namespace, job), ()) if not one.is_indexed)
    indexed, _, index = job.rpartition("-")
    if index.isdecimal():
        yield from (one for one in holders.get((namespace, indexed), ()) if one.is_indexed)


def fold(measured: Measured, counted: Mapping[RunMinute, int]) -> dict[RunMinute, HourFigures]:
    """By run and hour. `counted`: by run and hour, the minutes that were counted before; they are left out."""
    found: dict[RunMinute, HourFigures] = {}
    for (run_id, minute), devices in sorted(measured.minutes.items(), key=lambda item: item[0]):
        key = (run_id, hour_of(minute))
        if counted.get(key, 0) & bit_of(minute):
            continue
        holder = measured.holders[run_id]
        activities, measure = _activities(holder, devices.values())
        # While a device is not measured, nothing is known of the run. A shared GPU is one device.
        if len(activities) < (1 if holder.measure == SHARED else holder.units):
            continue
        figures = found.setdefault(key, HourFigures(holder, measure))
        _add(figures, minute, activities, list(devices.values()))
    return found


def _activities(holder: Holder, devices: Iterable[DeviceMinute]) -> tuple[list[float], str]:
    """Utilisation where there is one. That of a slice is only its engine."""
    measured = list(devices)
    by_engine = [one.engine for one in measured if one.engine is not None]
    if holder.measure == ENGINE:
        return by_engine, ENGINE
    by_utilisation = [one.utilisation for one in measured if one.utilisation is not None]
    found = by_utilisation or by_engine
    if holder.measure == SHARED:
        return found, SHARED
    return found, UTILISATION if by_utilisation else ENGINE


def _add(figures: HourFigures, minute: datetime, activities: list[float], devices: list[DeviceMinute]) -> None:
    busy = sum(one >= BUSY_PERCENT for one in activities)
    figures.seen_minutes |= bit_of(minute)
    figures.busy_minutes |= bit_of(minute) if busy else 0
    figures.activity_last = sum(activities) / len(activities)
    figures.activity_sum += figures.activity_last
    figures.activity_max = max(figures.activity_max, *activities)
    figures.busy_devices_max = max(figures.busy_devices_max, busy)
    full = [
        (one.memory_used, one.memory_used + one.memory_free)
        for one in devices
        if one.memory_used is not None and one.memory_free is not None and one.memory_used + one.memory_free > 0
    ]
    figures.memory_last_mib = figures.power_last_w = None
    if full:
        used = figures.memory_last_mib = sum(held for held, _ in full)
        figures.memory_samples += 1
        figures.memory_sum_mib += used
        figures.memory_max_mib = max(figures.memory_max_mib, used)
        figures.memory_total_mib = max(figures.memory_total_mib, sum(total for _, total in full))
        figures.memory_share_max = max(figures.memory_share_max, *(100 * held / total for held, total in full))
    if power := [one.power for one in devices if one.power is not None]:
        figures.power_samples += 1
        figures.power_last_w = sum(power)
        figures.power_sum_w += figures.power_last_w
