"""How many units of a node the quota counts: a rise at once, a fall when it has lasted for the minutes of the class.

Pure. A device plugin that restarts makes a node offer nothing for a minute; if the quota followed, Kueue would preempt
borrowers although nothing is lost. What an operator does counts at once: a node that is cordoned, or has a taint that
the class does not tolerate, has only the units that are in use on it; a deleted node has none.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True)
class SeenUnits:
    """Units of a class on a node now. `offered` is 0 while the node is not ready. `is_open`: takes new pods."""

    offered: int
    used: int
    is_open: bool

    @property
    def reported(self) -> int:
        return self.offered if self.is_open else min(self.offered, self.used)


@dataclass(frozen=True)
class CountedUnits:
    """`counted`: units in the quota; `reported`: units of the node, the same number since `since`."""

    counted: int
    reported: int
    since: datetime

    @property
    def is_delayed(self) -> bool:
        return self.counted > self.reported


def counted_now(
    before: CountedUnits | None, seen: SeenUnits, *, delay: timedelta, now: datetime, is_current: bool
) -> CountedUnits:
    """`is_current`: the cluster was heard recently. Without news a delayed fall stays delayed."""
    if before is None or not seen.is_open or seen.reported >= before.counted:
        if before is not None and (before.counted, before.reported) == (seen.reported, seen.reported):
            return before
        return CountedUnits(seen.reported, seen.reported, now)
    since = before.since if before.reported == seen.reported else now
    is_over = not delay or (is_current and now >= since + delay)
    return CountedUnits(seen.reported if is_over else before.counted, seen.reported, since)
