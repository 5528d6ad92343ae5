"""Actions about rules: deciding which lines of a request a rule approves as requested, and changing a rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.db import OperationalError, transaction

from accounts.core.actor import Actor, system_actor
from accounts.events.actions import record
from catalog.models import GpuClass
from portal.core.errors import BUSY, Refused, get_or_refuse, refuse_if, to_refusal
from tenants.core import policy
from tenants.grants.overcommit import queries
from tenants.grants.promises import Promise
from tenants.models import QuotaLine, QuotaRequest, Rule, Tenant
from tenants.requests.decisions.types import Decision, OverPromise
from tenants.requests.rules import queries as rule_queries
from tenants.requests.rules.policy import (
    DECREASE,
    INCREASE,
    IncreaseBounds,
    bounds_refusals,
    increase_justification,
    increase_refusal,
    is_nowhere_more,
)
from tenants.requests.usage_evidence import MeasureUsage

# Applies decisions of a rule: `apply_decisions` of tenants.requests.decisions.actions.
ApplyDecisions = Callable[..., Any]


@transaction.atomic
def change_rule(name: str, *, is_on: bool, bounds: IncreaseBounds | None = None, by: Actor) -> Rule:
    """Turns a rule on or off. `bounds`: only for the rule "increase"; None: unchanged. Repeating it changes nothing.

    Raises Refused: not_allowed (403), not_found (404), bad_bounds (422).
    """
    refuse_if(policy.may_operate(by))
    row = get_or_refuse(Rule.objects.select_for_update(), name=name)
    wanted: dict[str, Any] = {"is_on": is_on}
    if bounds is not None and name == INCREASE:
        refuse_if(next(iter(bounds_refusals(asdict(bounds)).values()), None))
        wanted |= asdict(bounds)
    before = {field: getattr(row, field) for field, value in wanted.items() if getattr(row, field) != value}
    if not before:
        return row
    after = {field: wanted[field] for field in before}
    for field, value in after.items():
        setattr(row, field, value)
    row.save(update_fields=list(after))
    record(by, "rule.changed", row, before=before, after=after)
    return row


def decide_by_rules(
    request: QuotaRequest,
    lines: Iterable[QuotaLine],
    *,
    measure: MeasureUsage | None,
    at: datetime,
    decide: ApplyDecisions,
) -> set[int]:
    """Lets the rules decide the lines that they may, in the transaction of the filing. Returns the ids of decided
    lines.

    Without `measure` the team's usage is unknown and justifies nothing.
    """
    base = [line for line in lines if line.kind == QuotaLine.Kind.BASE]
    less = [line for line in base if _is_decrease(request.tenant, line, at)]
    more = [line for line in base if line not in less]
    decided: set[int] = set()
    if less and rule_queries.is_rule_on(DECREASE):
        decisions = [Decision(line.pk, approve=True, measured={"rule": {"name": DECREASE}}) for line in less]
        _by(DECREASE, request, decisions, decide)
        decided |= {line.pk for line in less}
    if more and measure and rule_queries.is_rule_on(INCREASE):
        for decision in _increases(request.tenant, more, measure, at):
            if _is_possible(request, decision, decide):
                decided.add(decision.line_id)
    return decided


def _increases(tenant: Tenant, lines: Sequence[QuotaLine], measure: MeasureUsage, at: datetime) -> Iterator[Decision]:
    """About eight queries, whatever the number of lines."""
    bounds = rule_queries.increase_bounds()
    classes = GpuClass.objects.in_bulk([line.gpu_class_id for line in lines])
    plain = measure(tenant, list(classes.values())).plain
    held = rule_queries.granted_and_base_units([tenant.pk], at=at)
    for line in sorted(lines, key=lambda line: line.gpu_class_id):  # as classes are locked everywhere
        key, known = (tenant.pk, line.gpu_class_id), plain.get(line.gpu_class_id, {})
        name = classes[line.gpu_class_id].name
        facts = rule_queries.increase_facts(line, name, held.get(key, (0, 0)), known, at=at)
        if increase_refusal(facts, bounds) is None:
            rule = {"name": INCREASE, "facts": asdict(facts), "bounds": asdict(bounds)}
            kept = {**known, "rule": rule}
            yield Decision(line.pk, approve=True, reason=increase_justification(facts), measured=kept)


def _is_possible(request: QuotaRequest, decision: Decision, decide: ApplyDecisions) -> bool:
    """False for a line that would overcommit or needs other approvers; people decide it."""
    try:
        with transaction.atomic():
            _by(INCREASE, request, [decision], decide)
    except Refused:
        return False
    except OperationalError as error:
        if to_refusal(error) != BUSY:
            raise
        return False
    return True


def _by(rule: str, request: QuotaRequest, decisions: Sequence[Decision], decide: ApplyDecisions) -> None:
    decide(request, decisions, OverPromise(), by=system_actor(f"rule {rule}"), rule=rule, subject="")


def _is_decrease(tenant: Tenant, line: QuotaLine, at: datetime) -> bool:
    asked = Promise(line.asked_units, max(line.asked_from, at), line.asked_until)
    before, after = queries.own_promises_before_and_after(tenant.pk, line.gpu_class_id, asked, at=at)
    return is_nowhere_more(before, after)
