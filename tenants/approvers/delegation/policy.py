"""Who may name a delegate, for how long, and who may end it. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from accounts.core.actor import Actor
from accounts.core.policy import scope_refusal
from accounts.models import Scope
from portal.core.errors import Refusal
from tenants.approvers.policy import ApproverRights

DELEGATION_MAX = timedelta(days=92)


def may_name_delegate(by: Actor, rights: ApproverRights) -> Refusal | None:
    """A delegate cannot name another delegate."""
    if refusal := scope_refusal(by, Scope.DECIDE):
        return refusal
    if rights.own is None:
        return Refusal("not_allowed", "Only approvers can name a delegate.", status=403)
    if rights.own.classes == frozenset():
        return Refusal("nothing_to_give", "You have no classes to decide, so you cannot name a delegate.", status=409)
    return None


def unknown_person(email: str) -> Refusal:
    return Refusal("unknown_person", f"No account has the address '{email[:80]}'.", "email")


def delegate_refusal(email: str, *, is_active: bool, is_self: bool) -> Refusal | None:
    if is_self:
        return Refusal("is_self", "You cannot be your own delegate. Enter the address of another person.", "email")
    if not is_active:
        return Refusal("suspended", f"The account of '{email[:80]}' is suspended. Choose another person.", "email", 409)
    return None


def delegation_period_refusal(starts: datetime, ends: datetime, *, now: datetime) -> Refusal | None:
    if ends <= max(starts, now):
        return Refusal("bad_period", "The last day must be on or after the first day, and not in the past.", "ends_at")
    if ends - starts > DELEGATION_MAX:
        text = f"A delegation can be at most {DELEGATION_MAX.days} days long. Choose an earlier last day."
        return Refusal("bad_period", text, "ends_at")
    return None


def may_end_delegation(by: Actor, *, approver: int, deputy: int, is_over: bool) -> Refusal | None:
    if refusal := scope_refusal(by, Scope.DECIDE):
        return refusal
    if by.user_id not in (approver, deputy):
        return Refusal("not_allowed", "Only the approver or the delegate can end this delegation.", status=403)
    if is_over:
        return Refusal("is_over", "This delegation has already ended. Nothing was changed.", status=409)
    return None
