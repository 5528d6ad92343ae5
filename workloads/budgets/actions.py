"""Sets and removes the budget of a team, and allows launches beyond it until the end of the month."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.db import transaction
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.events.actions import record
from portal.core.errors import get_or_refuse, refuse_if
from tenants.models import Tenant
from workloads.budgets import policy
from workloads.core import queries
from workloads.models import TeamBudget


@transaction.atomic
def set_budget(tenant: str, *, amount: Decimal | None, at_limit: str = TeamBudget.AtLimit.TELL, by: Actor) -> None:
    """From now on, for every month; None: no budget. The same again changes nothing. A confirmation was for the amount
    before, and ends. Owners are told again only of thresholds that the cost has still to reach. Raises Refused:
    not_found (404), not_allowed, missing_scope (403), bad_budget (422).
    """
    team = get_or_refuse(Tenant.objects.visible_to(by).select_for_update(no_key=True), slug=tenant)
    refuse_if(policy.may_set_budget(by, amount=amount, at_limit=at_limit))
    known = TeamBudget.objects.select_for_update().filter(tenant=team).first()
    before = _summary(known)
    if amount is None:
        if known is not None:
            record(by, "budget.removed", known, tenant=team.slug, before=before)
            known.delete()
        return
    row = known or TeamBudget(tenant=team)
    row.amount, row.at_limit = amount, at_limit
    if (after := _summary(row)) == before:
        return
    row.told_percent = min(row.told_percent, policy.reached(row.cost, amount))
    row.confirmed_at = row.confirmed_by = None
    if known is None:
        row.save(force_insert=True)
    else:
        row.save(update_fields=["amount", "at_limit", "told_percent", "confirmed_at", "confirmed_by"])
    record(by, "budget.set", row, tenant=team.slug, before=before, after=after)


@transaction.atomic
def confirm_launches(tenant: str, *, by: Actor) -> None:
    """For the rest of the month, and this amount. Raises Refused: not_found (404), not_allowed, missing_scope (403),
    nothing_to_confirm (409).
    """
    namespace, team = queries.team(by, tenant)
    refuse_if(policy.may_confirm(by, team))
    row = TeamBudget.objects.select_for_update().get(tenant=namespace.tenant)
    if row.confirmed_at is not None:
        return
    row.confirmed_at, row.confirmed_by = timezone.now(), by.person
    row.save(update_fields=["confirmed_at", "confirmed_by"])
    record(by, "budget.confirmed", row, tenant=tenant, after={"cost": row.cost, "amount": row.amount})


def _summary(row: TeamBudget | None) -> dict[str, Any]:
    return {} if row is None else {"amount": row.amount, "at_limit": str(row.at_limit)}
