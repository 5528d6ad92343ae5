"""Who sets a budget, and who allows launches beyond it. Pure. What it does to launches: workloads/core/policy.py."""

from __future__ import annotations

from decimal import Decimal

from accounts.core.actor import Actor
from accounts.core.policy import scope_refusal
from accounts.models import Scope
from portal.core.errors import Refusal
from tenants.core import policy as tenants_policy
from workloads.core.policy import CONFIRM, OWNER, STOP, TELL, TeamFacts, is_used_up

THRESHOLDS = (50, 80, 100)
AMOUNT_MAX = Decimal("999999999999.99")


def may_set_budget(by: Actor, *, amount: Decimal | None, at_limit: str = TELL) -> Refusal | None:
    """`amount` None: removes it."""
    if refusal := tenants_policy.may_operate(by):
        return refusal
    if amount is not None and not 0 < amount <= AMOUNT_MAX:
        return Refusal("bad_budget", f"Enter a budget of more than 0, up to {AMOUNT_MAX}.", "amount")
    if at_limit not in (TELL, CONFIRM, STOP):
        text = f"Choose {TELL}, {CONFIRM} or {STOP} for a budget that is used up."
        return Refusal("bad_budget", text, "at_limit")
    return None


def may_confirm(by: Actor, team: TeamFacts) -> Refusal | None:
    """Not with the scope of launches: a program that launches is not to confirm its own launches."""
    if refusal := scope_refusal(by, Scope.ADMIN):
        return refusal
    if team.role != OWNER:
        return Refusal("not_allowed", f"Only owners of {team.team} can confirm launches beyond the budget.", status=403)
    if team.budget is None or team.budget.at_limit != CONFIRM or not is_used_up(team.budget):
        return Refusal("nothing_to_confirm", "New launches need no confirmation now.", status=409)
    return None


def reached(cost: Decimal, amount: Decimal) -> int:
    """The highest threshold in percent that the cost has reached; 0: none."""
    return max((one for one in THRESHOLDS if cost * 100 >= amount * one), default=0)
