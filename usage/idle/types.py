"""What is read and written about idle runs, as values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from usage.idle.policy import Held


@dataclass(frozen=True)
class HeldRun:
    """A run that holds units of a class with an idle action now. `read_until`: of the Prometheus of its cluster.
    `watch_id`: of a notebook that is asked, None if it is no notebook. `kept_until`: by the rule of idle notebooks.
    """

    run_id: int
    namespace_id: int
    gpu_class_id: int
    units: int
    price_per_unit_hour: Decimal
    action: str
    held: Held
    read_until: datetime | None
    watch_id: int | None
    kept_until: datetime | None
