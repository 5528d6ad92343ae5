"""Since when a trial is unused. Runs belong to an app above, which registers a function that reads them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Max

from tenants.grants.queries import OVER_AT
from tenants.models import Grant, Namespace, QuotaLine


@dataclass(frozen=True)
class TeamRuns:
    """Runs of one team: whether one has not ended, and when the last one ended; None without any."""

    is_any_unfinished: bool
    last_ended_at: datetime | None


_runs: list[Callable[[int], TeamRuns]] = []


def register_team_runs(runs: Callable[[int], TeamRuns]) -> None:
    """`runs` reads the runs of a team by its id."""
    _runs[:] = [runs]


def idle_since(row: Namespace, at: datetime) -> datetime | None:
    """None: it is in use. Fails if no reader is registered: then it is unknown whether a trial is used."""
    (team_runs,) = _runs
    runs = team_runs(row.tenant_id)
    waits = QuotaLine.objects.filter(tenant_id=row.tenant_id, state=QuotaLine.State.PENDING)
    if runs.is_any_unfinished or waits.exists():
        return None
    last_grant = Grant.objects.filter(tenant_id=row.tenant_id).aggregate(at=Max(OVER_AT))["at"]
    found = max((moment for moment in (runs.last_ended_at, last_grant) if moment is not None), default=None)
    return found if found is not None and found <= at else None
