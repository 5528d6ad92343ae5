"""What the pool has to know about grants, which belong to an app above."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class AllocatedUnits:
    """`units`: allocated at `as_of`, by class id. `clock`: when that changes next without an action."""

    units: dict[int, int]
    clock: datetime | None
    as_of: datetime
