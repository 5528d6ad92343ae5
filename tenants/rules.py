"""What is decided without a person: which lines of a request a rule that is on approves as asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.db import OperationalError, transaction

from accounts.actions import record
from accounts.actor import Actor, system
from catalog.models import GpuClass
from portal.errors import BUSY, Refused, get_or_refuse, refuse_if, to_refusal
from tenants import policy, queries
from tenants.decisions import Decision, OverPromise
from tenants.measured import Measure
from tenants.models import QuotaLine, QuotaRequest, Rule, Tenant
from tenants.promises import Promise, in_force
from tenants.queries import rules
from tenants.rule_policy import DECREASE, INCREASE, Bounds, bounds_refusals, increase_refusal, justification

# Carries out decisions that a rule was asked about: `_decide` of tenants.actions.
Decide = Callable[..., Any]


@transaction.atomic
def change(name: str, *, is_on: bool, bounds: Bounds | None = None, by: Actor) -> Rule:
    """Turn a rule on or off; `bounds`: of the rule "increase", None: as they are. The same again changes nothing.

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


def decide_filed(
    request: QuotaRequest, lines: Iterable[QuotaLine], *, measure: Measure | None, at: datetime, decide: Decide
) -> set[int]:
    """Let the rules decide what they may, in the transaction of the filing. Returns the decided lines.

    Without `measure` nothing is known of the team's use, and nothing is justified by it.
    """
    base = [line for line in lines if line.kind == QuotaLine.Kind.BASE]
    less = [line for line in base if _is_decrease(request.tenant, line, at)]
    more = [line for line in base if line not in less]
    decided: set[int] = set()
    if less and rules.is_on(DECREASE):
        decisions = [Decision(line.pk, approve=True, measured={"rule": {"name": DECREASE}}) for line in less]
        _by(DECREASE, request, decisions, decide)
        decided |= {line.pk for line in less}
    if more and measure and rules.is_on(INCREASE):
        for decision in _increases(request.tenant, more, measure, at):
            if _is_possible(request, decision, decide):
                decided.add(decision.line_id)
    return decided


def _increases(tenant: Tenant, lines: Sequence[QuotaLine], measure: Measure, at: datetime) -> Iterator[Decision]:
    """About eight queries, whatever their number."""
    bounds = rules.increase_bounds()
    classes = GpuClass.objects.in_bulk([line.gpu_class_id for line in lines])
    plain = measure(tenant, list(classes.values())).plain
    held = rules.held_and_base([tenant.pk], at=at)
    for line in sorted(lines, key=lambda line: line.gpu_class_id):  # as classes are locked everywhere
        key, known = (tenant.pk, line.gpu_class_id), plain.get(line.gpu_class_id, {})
        name = classes[line.gpu_class_id].name
        facts = rules.increase_facts(line, name, held.get(key, (0, 0)), known, at=at)
        if increase_refusal(facts, bounds) is None:
            rule = {"name": INCREASE, "facts": asdict(facts), "bounds": asdict(bounds)}
            kept = {**known, "rule": rule}
            yield Decision(line.pk, approve=True, reason=justification(facts), measured=kept)


def _is_possible(request: QuotaRequest, decision: Decision, decide: Decide) -> bool:
    """What would promise too much, or has to wait for others who decide, is left to people."""
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


def _by(rule: str, request: QuotaRequest, decisions: Sequence[Decision], decide: Decide) -> None:
    decide(request, decisions, OverPromise(), by=system(f"rule {rule}"), rule=rule, subject="")


def _is_decrease(tenant: Tenant, line: QuotaLine, at: datetime) -> bool:
    asked = Promise(line.asked_units, max(line.asked_from, at), line.asked_until)
    before, after = queries.own_before_and_after(tenant.pk, line.gpu_class_id, asked, at=at)
    return is_nowhere_more(before, after)


def is_nowhere_more(before: Sequence[Promise], after: Sequence[Promise]) -> bool:
    """Whether at no instant more is promised after than before."""
    edges = {edge for promise in (*before, *after) for edge in (promise.start, promise.end)}
    return all(in_force(after, at) <= in_force(before, at) for at in edges)
