"""What is decided without a person: which lines of a request a rule that is on approves as asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from django.db import transaction

from accounts.actions import record
from accounts.actor import Actor
from portal.errors import get_or_refuse, refuse_if
from tenants import policy, queries
from tenants.models import QuotaLine, Rule, Tenant
from tenants.promises import Promise, in_force

DECREASE = "decrease"


@transaction.atomic
def switch(name: str, *, is_on: bool, by: Actor) -> Rule:
    """Raises Refused: not_allowed (403), not_found (404)."""
    refuse_if(policy.may_operate(by))
    rule = get_or_refuse(Rule.objects.select_for_update(), name=name)
    before, rule.is_on = rule.is_on, is_on
    rule.save(update_fields=["is_on"])
    record(by, "rule.switched", rule, before={"is_on": before}, after={"is_on": is_on})
    return rule


def decreases(tenant: Tenant, lines: Iterable[QuotaLine], *, at: datetime) -> list[QuotaLine]:
    """New totals by which the team has at no instant more than it has now. Two queries, one more a base line."""
    base = [line for line in lines if line.kind == QuotaLine.Kind.BASE]
    if not base or Rule.objects.filter(name=DECREASE, is_on=False).exists():
        return []
    return [line for line in base if _is_decrease(tenant, line, at)]


def _is_decrease(tenant: Tenant, line: QuotaLine, at: datetime) -> bool:
    asked = Promise(line.asked_units, max(line.asked_from, at), line.asked_until)
    before, after = queries.own_before_and_after(tenant.pk, line.gpu_class_id, asked, at=at)
    return is_nowhere_more(before, after)


def is_nowhere_more(before: Sequence[Promise], after: Sequence[Promise]) -> bool:
    """Whether at no instant more is promised after than before."""
    edges = {edge for promise in (*before, *after) for edge in (promise.start, promise.end)}
    return all(in_force(after, at) <= in_force(before, at) for at in edges)
