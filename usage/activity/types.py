"""What was measured, or why nothing was. Pure.

Nothing that was not measured becomes a number: a mean is that of the measured minutes, and None without any.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from portal.ui.text import date_and_time
from usage.right_size.types import SizeAdvice

# What is measured of a class, in words.
WORDS = {
    "utilisation": "GPU utilisation",
    "engine": "activity of the graphics engine; utilisation is not measured",
    "shared": "of the whole GPU, of all who share it",
}
NEVER_READ = "No Prometheus has been read: this installation does not measure what GPUs do."
NO_GPU = "Its class has no GPU."
NO_EXPORTER = "The metrics of GPUs of this vendor are not read."
NOT_HELD = "It holds no units now."
TOO_NEW = "It is measured from its first whole minute."
CLASS_WITHOUT_GPU = "The class has no GPU."
SHARED_CLASS = "What is measured of a shared GPU is the whole GPU, of all who share it."
NO_SAMPLE_OF_CLASS = "There are no samples of its GPUs: an exporter is away, or its samples name no pods."
NO_SAMPLE = "There are no samples of all its GPUs: an exporter is away, or its samples name no pods."
NO_SAMPLE_SHARED = "There is no sample of its pods: an exporter gives a shared GPU to one of the pods that share it."
MEASURED_VENDORS = frozenset({"nvidia", "amd"})
FIRST_MINUTES = timedelta(minutes=3)


@dataclass(frozen=True)
class Source:
    """How far Prometheus was read. `problem`: why the last attempt failed, "" if it did not."""

    read_until: datetime | None
    problem: str
    problem_since: datetime | None
    is_partial: bool


@dataclass(frozen=True)
class Hour:
    """The measured minutes of an hour. Activity in percent, memory in MiB, power in watts."""

    hour: datetime
    minutes: int
    busy_minutes: int
    activity: float
    activity_max: float
    memory_mib: float | None
    power_w: float | None

    @property
    def memory_gib(self) -> float | None:
        return None if self.memory_mib is None else self.memory_mib / 1024


@dataclass(frozen=True)
class Now:
    """The last minute, if it was measured."""

    activity: float
    memory_mib: float | None
    power_w: float | None

    @property
    def memory_gib(self) -> float | None:
        return None if self.memory_mib is None else self.memory_mib / 1024


@dataclass(frozen=True)
class RunActivity:
    """Of one run. `now` None: not measured, and `reason` says why. `measure`: a key of WORDS, "" before the first hour.
    `hours`: at most those of a week, the oldest first; hours without a measured minute are missing.
    """

    run_number: int
    measure: str
    now: Now | None
    reason: str
    read_until: datetime | None
    is_partial: bool
    hours: tuple[Hour, ...]
    memory_total_mib: float | None
    memory_share_max: float | None
    size_advice: SizeAdvice | None = None

    @property
    def words(self) -> str:
        return WORDS.get(self.measure, "")

    @property
    def minutes(self) -> int:
        return sum(one.minutes for one in self.hours)

    @property
    def busy_minutes(self) -> int:
        return sum(one.busy_minutes for one in self.hours)

    @property
    def mean(self) -> float | None:
        return sum(one.activity * one.minutes for one in self.hours) / self.minutes if self.minutes else None

    @property
    def memory_total_gib(self) -> float | None:
        return None if self.memory_total_mib is None else self.memory_total_mib / 1024

    @property
    def has_memory(self) -> bool:
        return any(one.memory_mib is not None for one in self.hours)

    @property
    def has_power(self) -> bool:
        return any(one.power_w is not None for one in self.hours)


@dataclass(frozen=True)
class DayOfClass:
    """One class of a team on one day: unit-hours that were held, those of them that were measured, and those in which
    the GPUs were busy: measured hours × activity. Slices and shares count as units. Shared GPUs are not measured by
    team.
    """

    day: datetime
    gpu_class: str
    class_name: str
    held: Decimal
    measured: float
    busy: float


@dataclass(frozen=True)
class ClassDay:
    """The same of all teams, and the unit-hours that nodes provided in `recorded_hours` of the day. `provided` None:
    the number of units was not recorded on that day.
    """

    day: datetime
    held: Decimal
    provided: Decimal | None
    recorded_hours: Decimal
    measured: float
    busy: float


@dataclass(frozen=True)
class ClassActivity:
    """The last days of one class, of one team or of all. `reason`: why it is not measured, or not now; "" if it is.
    `read_until`: the end of the last minute that was read; None for a class that is never measured. Days on which
    nothing was held or recorded are missing.
    """

    slug: str
    name: str
    days: tuple[ClassDay | DayOfClass, ...]
    reason: str
    read_until: datetime | None

    @property
    def held(self) -> float:
        return float(sum(one.held for one in self.days))

    @property
    def provided(self) -> float | None:
        known = [one.provided for one in self.days if isinstance(one, ClassDay) and one.provided is not None]
        return float(sum(known)) if known else None

    @property
    def recorded_hours(self) -> float:
        """Those in which `provided` was recorded."""
        return float(sum(one.recorded_hours for one in self.days if isinstance(one, ClassDay)))

    @property
    def measured(self) -> float:
        return sum(one.measured for one in self.days)

    @property
    def busy(self) -> float:
        return sum(one.busy for one in self.days)

    @property
    def busy_percent(self) -> float | None:
        return 100 * self.busy / self.measured if self.measured else None


def never_measured_because(*, vendor: str, has_gpu: bool, is_shared: bool) -> str:
    """Why no unit of a class is measured. "": its units are."""
    if not has_gpu:
        return CLASS_WITHOUT_GPU
    if vendor not in MEASURED_VENDORS:
        return NO_EXPORTER
    return SHARED_CLASS if is_shared else ""


def unread_because(source: Source | None) -> str:
    """Why Prometheus cannot be read now. "": it can."""
    if source is None or (source.read_until is None and not source.problem):
        return NEVER_READ
    if source.problem:
        since = f" since {date_and_time(source.problem_since)}" if source.problem_since else ""
        return f"Prometheus could not be read{since}. {source.problem}"
    return ""


def not_measured_because(
    source: Source | None,
    *,
    vendor: str,
    has_gpu: bool,
    is_shared: bool,
    held_since: datetime | None,
    now: datetime,
) -> str:
    """Why the last minute of a run was not measured. `held_since` None: it holds no units."""
    if not has_gpu:
        return NO_GPU
    if vendor not in MEASURED_VENDORS:
        return NO_EXPORTER
    unread = unread_because(source)
    if unread == NEVER_READ:
        return NEVER_READ
    if held_since is None:
        return NOT_HELD
    if unread:
        return unread
    if now - held_since < FIRST_MINUTES:
        return TOO_NEW
    return NO_SAMPLE_SHARED if is_shared else NO_SAMPLE
