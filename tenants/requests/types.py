"""The lines of a request as typed: more quota, or a reduction of quota by staff."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class RequestedLine:
    """One line as typed. `units` are the new total of a base line, and the added units of an increase."""

    gpu_class: str
    units: int
    starts: datetime
    ends: datetime
    kind: str = "base"


@dataclass(frozen=True)
class ReclaimLine:
    """One line of a reduction as typed: the lower total, from `starts` until the end of the grant that it cuts."""

    gpu_class: str
    units: int
    starts: datetime
