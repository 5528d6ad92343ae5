"""Creates quota for demo data with the portal's own actions: a user requests it, an approver approves it. Needs
Django.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accounts.core.actor import Actor
    from tenants.models import QuotaRequest

DAYS = 90


def file_request(
    team: str, units: Collection[tuple[str, int]], why: str, *, by: Actor, days: int = DAYS
) -> QuotaRequest:
    """Requests `units` (class slug, number) for this many days from now."""
    from django.utils import timezone

    from tenants.requests import actions
    from tenants.requests.types import RequestedLine

    now = timezone.now()
    ends = now + timedelta(days=days)
    lines = [RequestedLine(gpu_class=slug, units=number, starts=now, ends=ends) for slug, number in units]
    return actions.file_request(team, lines=lines, justification=why, by=by)


def approve_request(filed: QuotaRequest, *, by: Actor) -> None:
    """Approves every line as requested."""
    from tenants.requests.decisions import actions as decision_actions
    from tenants.requests.decisions.types import Decision

    decision_actions.decide_request(filed.pk, [Decision(line.pk, approve=True) for line in filed.lines.all()], by=by)
