"""When a closed team's volumes are announced to go, and when to look again. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Protocol

REMIND_BEFORE = timedelta(days=7)


class ClosedNamespace(Protocol):
    closes_at: datetime | None
    volumes_until: datetime | None


def is_volume_reminder_due(row: ClosedNamespace, at: datetime) -> bool:
    """Seven days before the volumes go, unless the announcement itself was that late."""
    if row.volumes_until is None or row.closes_at is None:
        return False
    return row.closes_at < row.volumes_until - REMIND_BEFORE <= at < row.volumes_until


def next_volume_check(row: ClosedNamespace, at: datetime) -> datetime | None:
    """While volumes are kept: when to look again."""
    if row.volumes_until is None:
        return None
    moments = (row.volumes_until - REMIND_BEFORE, row.volumes_until)
    return min((moment for moment in moments if moment > at), default=None)
