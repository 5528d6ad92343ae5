"""The budget of a team as its pages and the API show it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_DOWN, Decimal

from django.utils import timezone

from accounts.core.actor import Actor
from tenants.models import Membership, Tenant
from workloads.budgets.forecast import forecast, forecast_basis
from workloads.core.policy import BudgetFacts, TeamFacts, budget_refusal
from workloads.models import TeamBudget


@dataclass(frozen=True)
class BudgetState:
    """Of this month; `cost`, `percent` and `measured_at` None: not measured yet. `refusal`: why nothing starts, or "".
    `may_confirm`: an owner can change that.
    """

    amount: Decimal
    at_limit: str
    at_limit_text: str
    cost: Decimal | None
    percent: int | None
    measured_at: datetime | None
    forecast: Decimal | None
    forecast_basis: str
    confirmed_at: datetime | None
    confirmed_by: str
    refusal: str
    is_near: bool
    may_confirm: bool


def budget_of(tenant: Tenant) -> BudgetState | None:
    """None: the team has none. One query, which reads one row."""
    row = TeamBudget.objects.select_related("confirmed_by").filter(tenant=tenant).first()
    if row is None:
        return None
    facts = facts_of(row, at=timezone.now())
    told = budget_refusal(TeamFacts(tenant.name, "", "active", 0, facts)) if facts else None
    is_confirmed = facts is not None and facts.is_confirmed
    return BudgetState(
        amount=row.amount,
        at_limit=row.at_limit,
        at_limit_text=row.get_at_limit_display(),
        cost=row.cost if facts else None,
        percent=int((row.cost * 100 / row.amount).quantize(Decimal(1), ROUND_DOWN)) if facts else None,
        measured_at=row.measured_at if facts else None,
        forecast=forecast(row) if facts else None,
        forecast_basis=forecast_basis(row) if facts else "Unknown: this month was not measured yet.",
        confirmed_at=row.confirmed_at if is_confirmed else None,
        confirmed_by=row.confirmed_by.name if is_confirmed and row.confirmed_by else "",
        refusal=told.message if told else "",
        is_near=facts is not None and row.cost * 100 >= row.amount * 80,
        may_confirm=told is not None and told.code == "budget_unconfirmed",
    )


def is_owner(by: Actor, tenant: Tenant) -> bool:
    return Membership.objects.of(by).filter(tenant=tenant, role=Membership.Role.OWNER).exists()


def facts_of(row: TeamBudget, *, at: datetime) -> BudgetFacts | None:
    """None: not measured in the month of `at`."""
    if row.month_since is None or row.month_until is None or not row.month_since <= at < row.month_until:
        return None
    return BudgetFacts(row.amount, row.cost, row.at_limit, row.confirmed_at is not None, row.month_until)
