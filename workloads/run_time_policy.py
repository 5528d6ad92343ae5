"""How long a run may take, when people are told of its end, and what an extension may add. Pure.

A run's time begins when its container starts: waiting in the queue costs nothing.
"""

from __future__ import annotations

from datetime import timedelta

LEADS = (timedelta(minutes=30), timedelta(minutes=5))


def minutes(asked_hours: int | None, limit_hours: int | None) -> int | None:
    """What a run gets; None: no end. A class may have shrunk since it was declared: never more than it allows now."""
    allowed = [hours for hours in (asked_hours, limit_hours) if hours is not None]
    return min(allowed) * 60 if allowed else None
