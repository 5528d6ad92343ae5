"""Stores what was measured of a budget, and tells the owners of the team when a threshold is reached."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db import transaction

from accounts.core.actor import system_actor
from accounts.events.actions import deliver, record
from accounts.models import User
from tenants.core.notifications import page_url
from tenants.models import Membership
from workloads.budgets.forecast import forecast, forecast_basis
from workloads.budgets.policy import reached
from workloads.models import TeamBudget

BY = system_actor("budgets")


@dataclass(frozen=True)
class Measured:
    """`cost`: of the month until `at`; `recent_cost`: from `recent_since` until `at`."""

    month_since: datetime
    month_until: datetime
    at: datetime
    cost: Decimal
    recent_cost: Decimal
    recent_since: datetime


@transaction.atomic
def store_measured(tenant_id: int, found: Measured) -> None:
    """An older measurement replaces nothing; the first one of a month begins anew. Two queries if nobody is told."""
    row = TeamBudget.objects.select_for_update(of=("self",)).select_related("tenant").filter(tenant=tenant_id).first()
    if row is None or (row.measured_at is not None and row.measured_at >= found.at):
        # Removed meanwhile, or measured by another worker.
        return
    if row.month_since != found.month_since:
        row.told_percent, row.confirmed_at, row.confirmed_by_id = 0, None, None
    row.cost, row.month_since, row.month_until = found.cost, found.month_since, found.month_until
    row.measured_at, row.recent_cost, row.recent_since = found.at, found.recent_cost, found.recent_since
    percent, told = reached(row.cost, row.amount), row.told_percent
    row.told_percent = max(told, percent)
    row.save(
        update_fields=[
            *("cost", "month_since", "month_until", "measured_at", "recent_cost", "recent_since"),
            *("told_percent", "confirmed_at", "confirmed_by"),
        ]
    )
    if percent > told:
        _tell(row, percent)


def _tell(row: TeamBudget, percent: int) -> None:
    """Owners, once for the highest threshold that is new."""
    team, amount = row.tenant, row.amount
    event = record(BY, "budget.reached", row, tenant=team.slug, after={"percent": percent, "cost": row.cost})
    month = f"{row.month_since:%B %Y}" if row.month_since else ""
    then = {
        TeamBudget.AtLimit.TELL: "",
        TeamBudget.AtLimit.CONFIRM: "When it is used up, new launches need the confirmation of an owner.",
        TeamBudget.AtLimit.STOP: "When it is used up, nothing starts until the end of the month.",
    }[TeamBudget.AtLimit(row.at_limit)]
    expected = forecast(row)
    lines = [
        f"{team.name} has used {row.cost} of its budget of {amount} for {month}.",
        then,
        f"Forecast for the end of the month: {'unknown' if expected is None else expected}. {forecast_basis(row)}",
    ]
    owners = User.objects.filter(memberships__tenant=team, memberships__role=Membership.Role.OWNER, is_active=True)
    deliver(
        event,
        list(owners.order_by("pk")),
        subject=f"{team.name} has used {percent}% of its budget",
        body="\n\n".join([*filter(None, lines), page_url(f"/teams/{team.slug}/usage")]),
    )
