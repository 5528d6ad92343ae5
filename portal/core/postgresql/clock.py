"""Whether PostgreSQL's clock, by which rows are due, was set back."""

from __future__ import annotations

import time
from datetime import datetime

SET_BACK_S = 5.0


class SetBack:
    """Finds that a clock was set back, by comparison with the time that this process has run."""

    def __init__(self) -> None:
        self._lead_s: float | None = None

    def seconds(self, clock: datetime) -> float:
        """By how much the clock was set back since the last call; 0.0 for a few seconds, which rows may wait."""
        before_s, self._lead_s = self._lead_s, clock.timestamp() - time.monotonic()
        back_s = 0.0 if before_s is None else before_s - self._lead_s
        return back_s if back_s > SET_BACK_S else 0.0
