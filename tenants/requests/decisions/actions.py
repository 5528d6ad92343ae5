"""The action that decides lines of a request, for an approver or for a rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.db.models import QuerySet

from accounts.core.actor import Actor, system_actor
from accounts.events.actions import deliver, record
from catalog.classes import queries as class_queries
from catalog.models import GpuClass, Pool
from portal.core.due import touch, wake
from portal.core.errors import NOT_FOUND, Refusal, Refused, get_or_refuse, refuse, refuse_if
from portal.core.hints import page_hint
from portal.core.transitions import move_state
from portal.ui.text import time_with_zone
from tenants.approvers import queries as approver_queries
from tenants.core import queries as core_queries
from tenants.core.notifications import page_url
from tenants.grants import queries as grant_queries
from tenants.grants import types as grant_types
from tenants.grants.overcommit.queries import PromisedUnits, promised_of
from tenants.grants.promises import Promise
from tenants.grants.types import Overcommit
from tenants.members import queries as member_queries
from tenants.models import Grant, Namespace, Plan, QuotaLine, QuotaRequest, Tenant
from tenants.requests import policy as request_policy
from tenants.requests import queries as request_queries
from tenants.requests.decisions import mails
from tenants.requests.decisions import policy as decision_policy
from tenants.requests.decisions import queries as decision_queries
from tenants.requests.decisions.policy import ResolvedDecision, decision_refusal, resolve, with_delegator
from tenants.requests.decisions.types import Decision as Decision
from tenants.requests.decisions.types import LineState
from tenants.requests.decisions.types import OverPromise as OverPromise
from tenants.requests.policy import refusal_in_line

LOCK_TIMEOUT = "2s"


@transaction.atomic
def decide_request(
    request_id: int,
    decisions: Sequence[Decision],
    *,
    by: Actor,
    over_promise: OverPromise | None = None,
    subject: str = "",
) -> QuotaRequest:
    """Decides all of the named lines, or none. `subject`: of the mail, if the mail is about more than this request.

    Locks the class rows in id order, then the namespace: another decision about the same class waits at most 2 s.
    Raises Refused: not_found (404), not_allowed, own_request, own_team, not_your_class (403), already_decided, closed,
    class_retiring, over_promised, busy, grant_overlaps (409), the rest 422 with its field.
    """
    found = QuotaRequest.objects.visible_to(by).select_related("tenant", "filed_by")
    request = get_or_refuse(found, pk=request_id)
    if not decisions or len({decision.line_id for decision in decisions}) < len(decisions):
        raise refuse("bad_lines", "Send a decision for at least one line, and each line only once.", field="lines")
    return apply_decisions(request, decisions, over_promise or OverPromise(), by=by, subject=subject)


def decide_by_rule(request: QuotaRequest, *, rule: str, subject: str) -> QuotaRequest:
    """Approves its pending lines as requested, in the transaction of an action that checked the rule. Never
    overcommits.
    """
    pending = request.lines.filter(state=LineState.PENDING).order_by("pk").values_list("pk", flat=True)
    decisions = [Decision(pk, approve=True, measured={"rule": {"name": rule}}) for pk in pending]
    return apply_decisions(
        request, decisions, OverPromise(), by=system_actor(f"rule {rule}"), rule=rule, subject=subject
    )


def apply_decisions(
    request: QuotaRequest,
    decisions: Sequence[Decision],
    over_promise: OverPromise,
    *,
    by: Actor,
    subject: str,
    rule: str = "",
) -> QuotaRequest:
    """`rule`: the rule that decides instead of a person; the caller has already checked it."""
    wanted = {decision.line_id for decision in decisions}
    named = QuotaLine.objects.filter(request=request, pk__in=wanted)
    classes, namespaces = lock_classes(request.tenant, named.values("gpu_class"))
    # Read only after locking: another process may have decided or withdrawn lines while this one waited.
    lines = {line.pk: line for line in named}
    if lines.keys() != wanted:
        raise Refused(NOT_FOUND)
    now = core_queries.database_now()
    standing = member_queries.standing_of(by, request.tenant, wanted=namespaces[0].wanted)
    mine = approver_queries.rights_of(by)
    settled = []
    for index, decision in enumerate(decisions):
        line = lines[decision.line_id]
        line.gpu_class = gpu_class = classes[line.gpu_class_id]
        met = request_queries.decidable_line(line, gpu_class, request.filed_by_id, standing, mine)
        refuse_if(None if rule else decision_policy.may_decide(by, met))
        refuse_if(decision_policy.may_grant(standing) if decision.approve else None)
        lender = mine.lender(gpu_class.slug, line.tenant_id, request.filed_by_id)
        one = resolve(line, with_delegator(decision, lender), now)
        if one.is_reclaim:
            one = one.cutting(grant_queries.base_grant_at(line.tenant_id, line.gpu_class_id, one.starts))
        refuse_if(refusal_in_line(index, decision_refusal(one, gpu_class.name, now)))
        settled.append(one)
    promised = promised_of(request.tenant_id, list(classes), at=now)
    figures = decision_queries.class_figures(
        request.tenant, list(classes.values()), at=now, target=namespaces[0], promised=promised
    )
    for index, one in enumerate(settled):
        refuse_if(refusal_in_line(index, _growth(one, classes[one.line.gpu_class_id], figures)))
    excesses = _overcommits([one for one in settled if one.decision.approve], classes, figures, promised)
    refuse_if(decision_policy.may_over_promise(excesses, is_ticked=over_promise.is_ticked, reason=over_promise.reason))
    for one in settled:
        facts = _plain(figures[one.line.gpu_class_id]) | dict(one.decision.measured)
        bases = promised.bases(one.line.gpu_class_id)
        _carry_out(one, bases, by=by, rule=rule, now=now, facts=facts, over_promise=over_promise)
    _wake_reconcilers(request.tenant, namespaces)
    _notify(request, settled, excesses, over_promise, by=by, subject=subject)
    return request


def lock_classes(tenant: Tenant, class_ids: QuerySet[QuotaLine, Any]) -> tuple[dict[int, GpuClass], list[Namespace]]:
    """Takes the locks that every decision about these classes for the team takes, in this order."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
    rows = GpuClass.objects.select_for_update(of=("self",), no_key=True).filter(pk__in=class_ids).order_by("pk")
    classes = {row.pk: row for row in rows}
    namespaces = Namespace.objects.select_for_update(of=("self",), no_key=True).filter(tenant=tenant).order_by("pk")
    return classes, list(namespaces.select_related("cluster"))


def _growth(
    one: ResolvedDecision, gpu_class: GpuClass, figures: dict[int, decision_queries.ClassFigures]
) -> Refusal | None:
    if not one.decision.approve:
        return None
    facts = grant_types.ClassFacts(
        gpu_class.slug,
        gpu_class.name,
        gpu_class.life_cycle,
        figures[gpu_class.pk].held,
        successor=class_queries.successor_name(gpu_class),
    )
    return request_policy.growth_refusal(facts, kind=one.line.kind, units=one.units)


def _overcommits(
    approved: list[ResolvedDecision],
    classes: dict[int, GpuClass],
    figures: dict[int, decision_queries.ClassFigures],
    promised: PromisedUnits,
) -> list[Overcommit]:
    """Returns where the approved lines would exceed the limit of the class, and by more than it is exceeded already."""
    found = [
        promised.excess(
            classes[one.line.gpu_class_id],
            Promise(one.units, one.starts, one.ends),
            is_base=one.is_total,
            limit=figures[one.line.gpu_class_id].limit,
        )
        for one in approved
    ]
    return [excess for excess in found if excess]


def _plain(figures: decision_queries.ClassFigures) -> dict[str, Any]:
    return {**asdict(figures), "as_of": figures.as_of.isoformat() if figures.as_of else None}


def _carry_out(
    one: ResolvedDecision,
    bases: Sequence[Grant],
    *,
    by: Actor,
    rule: str,
    now: datetime,
    facts: dict[str, Any],
    over_promise: OverPromise,
) -> None:
    """`bases`: the team's grants of this class that are not over, without increases."""
    line = one.line
    decided: dict[str, Any] = {"decided_by": by.user, "decided_at": now, "reason": one.decision.reason[:500]}
    decided["rule"] = rule
    if not one.decision.approve:
        move_state(QuotaLine, line.pk, to=LineState.DENIED, facts=facts, **decided)
        return
    if over_promise.is_ticked:
        facts = {**facts, "over_promise": over_promise.reason[:500]}
    move_state(
        QuotaLine,
        line.pk,
        to=LineState.APPROVED,
        facts=facts,
        decided_units=one.units,
        decided_from=one.starts,
        decided_until=one.ends,
        decided_grace=one.grace if one.units else None,
        **decided,
    )
    if one.is_total:
        _end_running(bases, one)
    # A new total of 0 ends the running grant and creates no grant.
    if one.units:
        Grant.objects.create(
            tenant_id=line.tenant_id,
            gpu_class_id=line.gpu_class_id,
            kind=Grant.Kind.BASE if one.is_total else Grant.Kind.BOOST,
            units=one.units,
            period=DateTimeTZRange(one.starts, one.ends),
            grace=one.grace,
            line=line,
        )


def _end_running(bases: Sequence[Grant], one: ResolvedDecision) -> None:
    """Moves the running base grant's end forward to the new grant's start: the only change that a grant may have."""
    for grant in bases:
        if grant.period.upper <= one.starts or grant.period.lower >= one.ends:
            continue
        if grant.period.lower >= one.starts:
            text = (
                f"A total of {grant.units} is already granted from {time_with_zone(grant.period.lower)}. Choose an "
                "earlier end or a later start."
            )
            raise refuse("grant_overlaps", text, field="ends_at", status=409)
        Grant.objects.filter(pk=grant.pk).update(period=DateTimeTZRange(grant.period.lower, one.starts))


def _wake_reconcilers(tenant: Tenant, namespaces: Sequence[Namespace]) -> None:
    for namespace in namespaces:
        touch(Namespace, namespace.pk)
        # Woken, not touched: the units that can be lent change with grants, the catalog does not.
        wake(Pool, Pool.objects.filter(cluster_id=namespace.cluster_id).values_list("pk", flat=True))
        page_hint(namespace.name)
    # This decision changes what the team's other pending requests would change in the cluster.
    wake(
        Plan,
        Plan.objects.filter(request__tenant=tenant, request__lines__state=LineState.PENDING).values_list(
            "pk", flat=True
        ),
    )


def _notify(
    request: QuotaRequest,
    settled: list[ResolvedDecision],
    excesses: list[Overcommit],
    over_promise: OverPromise,
    *,
    by: Actor,
    subject: str,
) -> None:
    tenant = request.tenant
    answers = [_answer(one) for one in settled]
    after: dict[str, Any] = {"lines": answers}
    if excesses:
        after |= {"over_promised": [asdict(excess) for excess in excesses], "because": over_promise.reason}
    event = record(by, "request.decided", request, tenant=tenant.slug, after=after)
    deliver(
        event,
        [request.filed_by, *member_queries.managers_of(tenant)],
        subject=subject or f"Quota request of {tenant.name}: decision",
        body=mails.decision_text(answers) + page_url(f"/requests/{request.pk}"),
    )


def _answer(one: ResolvedDecision) -> dict[str, Any]:
    line = one.line
    common = {"line": line.pk, "class": line.gpu_class.slug, "kind": line.kind, "reason": one.decision.reason}
    if "deputy_for" in one.decision.measured:
        common["deputy_for"] = one.decision.measured["deputy_for"]
    if not one.decision.approve:
        return {**common, "approved": False}
    dates = {"from": one.starts, "until": one.ends, "grace_hours": one.grace // timedelta(hours=1)}
    unit = {"unit": class_queries.unit_of(line.gpu_class)} if line.gpu_class.is_storage else {}
    return {**common, "approved": True, "units": one.units, **unit, **dates}
