"""When the deletion of a closed team's volumes is announced, and when to check again. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Protocol

REMIND_BEFORE = timedelta(days=7)


class ClosedNamespace(Protocol):
    closes_at: datetime | None
    volumes_until: datetime | None


def is_volume_reminder_due(row: ClosedNamespace, at: datetime) -> bool:
    """True from seven days before the volumes are deleted, unless closing was announced later than that."""
    if row.volumes_until is None or row.closes_at is None:
        return False
    return row.closes_at < row.volumes_until - REMIND_BEFORE <= at < row.volumes_until


def next_volume_check(row: ClosedNamespace, at: datetime) -> datetime | None:
    """Returns when to check again while volumes are kept."""
    if row.volumes_until is None:
        return None
    moments = (row.volumes_until - REMIND_BEFORE, row.volumes_until)
    return min((moment for moment in moments if moment > at), default=None)
