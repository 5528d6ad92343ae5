"""What a team used of a class, and the smaller total that would have been enough. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True)
class HeldActivity:
    """How busy the units were that a team held of a class, in unit-hours: those that were held, those of them that were
    measured, and measured × activity. `busy_units_max`: not more were busy in the same minute, of those measured.
    """

    held: float
    measured: float
    busy: float
    busy_units_max: int

    @property
    def share(self) -> float | None:
        """The mean activity, 0 to 1. None: nothing was measured."""
        return self.busy / self.measured if self.measured else None

    @property
    def seen_share(self) -> float:
        """The measured share of what was held, 0 to 1."""
        return min(1.0, self.measured / self.held) if self.held else 0.0


@dataclass(frozen=True)
class QuotaUse:
    """`total`: units of the running total; `total_min`: the smallest total that was in force at any time of the last
    `days`. `peak`: the most units in use at once; None: unknown. `seen_share`: the share of the time in which use was
    measured, 0 to 1. `activity` None: none was measured.

    `is_waiting`: a run waits for units, or ended without having got any. `may_request` False: the class cannot be
    requested now, for example because a line is pending.
    """

    gpu_class: str
    class_name: str
    unit: str
    days: int
    total: int
    total_min: int
    until: date
    peak: int | None
    seen_share: float
    activity: HeldActivity | None = None
    is_waiting: bool = False
    may_request: bool = True


@dataclass(frozen=True)
class SmallerTotal:
    """`units` instead of `total`, until the running total expires. `why`: what was measured, also as the justification
    of a request.
    """

    gpu_class: str
    class_name: str
    unit: str
    total: int
    units: int
    until: date
    why: str
