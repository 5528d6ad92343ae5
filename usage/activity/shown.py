"""Days of a team by class, for its page. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from usage.activity.types import DayOfClass


@dataclass(frozen=True)
class ClassDays:
    """One class of a team. `busy_percent`: of the measured unit-hours; None without any."""

    slug: str
    name: str
    days: tuple[DayOfClass, ...]

    @property
    def held(self) -> float:
        return float(sum(one.held for one in self.days))

    @property
    def measured(self) -> float:
        return sum(one.measured for one in self.days)

    @property
    def busy(self) -> float:
        return sum(one.busy for one in self.days)

    @property
    def busy_percent(self) -> float | None:
        return 100 * self.busy / self.measured if self.measured else None


def by_class(days: Sequence[DayOfClass]) -> list[ClassDays]:
    """The class with the most unit-hours first."""
    groups = groupby(days, key=lambda one: (one.gpu_class, one.class_name))
    found = [ClassDays(slug, name, tuple(some)) for (slug, name), some in groups]
    return sorted(found, key=lambda one: (-one.held, one.slug))
