"""What the pool needs of grants, which belong to a higher app."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class AllocatedUnits:
    """`units`: allocated at `as_of`, by class id. `clock`: when they next change without an action."""

    units: dict[int, int]
    clock: datetime | None
    as_of: datetime
