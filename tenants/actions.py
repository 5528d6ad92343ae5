"""The verbs of tenants: the only code that changes teams, members, requests, grants, and what namespaces shall be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.db.models import QuerySet

from accounts.actions import deliver, record
from accounts.actor import Actor, system
from accounts.models import User
from catalog import queries as catalog
from catalog.models import GpuClass, Pool
from portal.due import touch, wake
from portal.errors import NOT_FOUND, Refusal, Refused, get_or_refuse, refuse, refuse_if
from portal.hints import page_hint
from portal.transitions import move
from tenants import letters, policy, queries, rules

# Verbs of their own module, for those who look for them here.
from tenants.access import allow_team as allow_team
from tenants.access import disallow_team as disallow_team

# Decision and OverPromise are part of `decide`'s interface: callers find them here.
from tenants.decisions import Decision as Decision
from tenants.decisions import OverPromise as OverPromise
from tenants.decisions import Settled, refusal, settle, signed
from tenants.life import set_wanted as set_wanted
from tenants.line_policy import in_line
from tenants.measured import Measure
from tenants.members import accept_invitation as accept_invitation
from tenants.members import add_member as add_member
from tenants.members import answer_join as answer_join
from tenants.members import ask_to_join as ask_to_join
from tenants.members import decline_invitation as decline_invitation
from tenants.members import remove_member as remove_member
from tenants.members import revoke_invitation as revoke_invitation
from tenants.members import set_role as set_role
from tenants.members import withdraw_join as withdraw_join
from tenants.models import Grant, Namespace, Plan, QuotaLine, QuotaRequest, Tenant
from tenants.policy import Asked, Excess
from tenants.promises import Promise
from tenants.queries import reclaims, requests
from tenants.queries.promised import Promised, promised_of
from tenants.teams import create_tenant as create_tenant
from tenants.telling import address, hint_pages
from tenants.thread import comment_request as comment_request

State = QuotaLine.State
LOCK_TIMEOUT = "2s"


# ---- requests ----------------------------------------------------------------------------------------------------


@transaction.atomic
def file_request(
    tenant_slug: str, *, lines: Sequence[Asked], justification: str, by: Actor, measure: Measure | None = None
) -> QuotaRequest:
    """Ask for new totals and boosts. Rules that are on decide at once; for the rest approvers of the classes are told,
    and a worker tries what would change (Plan). `measure`: every door hands it in.

    Raises Refused: not_found (404), not_allowed (403), already_pending, closed (409), the rest 422 with its field.
    """
    tenant = get_or_refuse(Tenant.objects.visible_to(by), slug=tenant_slug)
    refuse_if(policy.may_file(by, queries.standing(by, tenant)))
    refuse_if(policy.request_refusal(lines, justification))
    now = queries.now()
    facts = queries.class_facts(tenant, [line.gpu_class for line in lines], at=now)
    request = put_request(tenant, lines, facts, justification=justification.strip(), filed_by=by.person, now=now)
    plan = Plan.objects.create(request=request)
    touch(Plan, plan.pk)
    event = record(by, "request.filed", request, tenant=tenant.slug, after={"lines": [asdict(line) for line in lines]})
    filed = list(QuotaLine.objects.filter(request=request).order_by("pk"))
    by_rule = rules.decide_filed(request, filed, measure=measure, at=now, decide=_decide)
    class_ids = [line.gpu_class_id for line in filed if line.pk not in by_rule]
    deliver(
        event,
        queries.approvers_of(class_ids, tenant=tenant) if class_ids else (),
        subject=f"{tenant.name} asks for quota",
        body=f"{justification.strip()}\n\n" + address(f"/requests/{request.pk}"),
    )
    hint_pages(tenant)
    return request


def put_request(
    tenant: Tenant,
    lines: Sequence[Asked],
    facts: Mapping[str, queries.AskedClass],
    *,
    justification: str,
    filed_by: User,
    now: datetime,
) -> QuotaRequest:
    """The rows of a request, each line asked of its class by slug; in the transaction of a verb that records it."""
    for index, asked in enumerate(lines):
        known = facts.get(asked.gpu_class)
        refuse_if(in_line(index, policy.line_refusal(asked, known.facts if known else None, now=now)))
    request = QuotaRequest.objects.create(tenant=tenant, filed_by=filed_by, justification=justification)
    QuotaLine.objects.bulk_create(
        QuotaLine(
            request=request,
            tenant=tenant,
            gpu_class_id=facts[asked.gpu_class].pk,
            kind=asked.kind,
            asked_units=asked.units,
            asked_from=max(asked.starts, now),
            asked_until=asked.ends,
        )
        for asked in lines
    )
    return request


@transaction.atomic
def withdraw(request_id: int, *, by: Actor) -> QuotaRequest:
    """Take back every pending line. Raises Refused: not_found (404), not_allowed (403), already_decided (409)."""
    request = get_or_refuse(QuotaRequest.objects.visible_to(by).select_related("tenant"), pk=request_id)
    standing = queries.standing(by, request.tenant)
    is_reclaim = request.lines.filter(kind=QuotaLine.Kind.RECLAIM).exists()
    refuse_if(policy.may_withdraw(by, standing, filed_by=request.filed_by_id, is_reclaim=is_reclaim))
    pending = QuotaLine.objects.filter(request=request, state=State.PENDING).order_by("pk")
    moved = pending.update(state=State.WITHDRAWN, decided_at=queries.now(), decided_by=by.user)
    if not moved:
        raise refuse("already_decided", "No line of this request is pending any more; nothing was changed.", status=409)
    Plan.objects.filter(request=request).update(due_at=None)
    event = record(by, "request.withdrawn", request, tenant=request.tenant.slug, after={"lines": moved})
    if is_reclaim:
        deliver(
            event,
            queries.managers_of(request.tenant),
            subject=f"Taking back units of {request.tenant.name} is withdrawn",
            body=f"{by.name} withdrew what was not decided; those grants stay as they are.\n\n"
            + address(f"/requests/{request.pk}"),
        )
    hint_pages(request.tenant)
    return request


# ---- decisions ---------------------------------------------------------------------------------------------------


@transaction.atomic
def decide(
    request_id: int,
    decisions: Sequence[Decision],
    *,
    by: Actor,
    over_promise: OverPromise | None = None,
    subject: str = "",
) -> QuotaRequest:
    """Decide lines of a request, all of those named or none. `subject`: of the mail, where it is about more.

    Class rows are locked in id order, then the namespace: whoever decides about the same class waits for us, at most
    2 s. Raises Refused: not_found (404), not_allowed, own_request, own_team, not_your_class (403), already_decided,
    closed, class_retiring, over_promised, busy, grant_overlaps (409), the rest 422 with its field.
    """
    found = QuotaRequest.objects.visible_to(by).select_related("tenant", "filed_by")
    request = get_or_refuse(found, pk=request_id)
    if not decisions or len({decision.line_id for decision in decisions}) < len(decisions):
        raise refuse("bad_lines", "Decide at least one line, each of them once.", field="lines")
    return _decide(request, decisions, over_promise or OverPromise(), by=by, subject=subject)


def decide_by_rule(request: QuotaRequest, *, rule: str, subject: str) -> QuotaRequest:
    """Its pending lines as asked, in the transaction of a verb that asked the rule; never more than there is."""
    pending = request.lines.filter(state=State.PENDING).order_by("pk").values_list("pk", flat=True)
    decisions = [Decision(pk, approve=True, measured={"rule": {"name": rule}}) for pk in pending]
    return _decide(request, decisions, OverPromise(), by=system(f"rule {rule}"), rule=rule, subject=subject)


def _decide(
    request: QuotaRequest,
    decisions: Sequence[Decision],
    over_promise: OverPromise,
    *,
    by: Actor,
    subject: str,
    rule: str = "",
) -> QuotaRequest:
    """`rule`: which one decides instead of a person; it was asked already."""
    wanted = {decision.line_id for decision in decisions}
    named = QuotaLine.objects.filter(request=request, pk__in=wanted)
    classes, namespaces = lock(request.tenant, named.values("gpu_class"))
    # Only now: somebody may have decided or withdrawn while we waited for the locks.
    lines = {line.pk: line for line in named}
    if lines.keys() != wanted:
        raise Refused(NOT_FOUND)
    now = queries.now()
    standing = queries.standing(by, request.tenant, wanted=namespaces[0].wanted)
    mine = queries.rights(by)
    settled = []
    for index, decision in enumerate(decisions):
        line = lines[decision.line_id]
        line.gpu_class = gpu_class = classes[line.gpu_class_id]
        met = requests.line_facts(line, gpu_class, request.filed_by_id, standing, mine)
        refuse_if(None if rule else policy.may_decide(by, met))
        refuse_if(policy.may_grant(standing) if decision.approve else None)
        lender = mine.lender(gpu_class.slug, line.tenant_id, request.filed_by_id)
        one = settle(line, signed(decision, lender), now)
        if one.is_reclaim:
            one = one.cutting(reclaims.base_at(line.tenant_id, line.gpu_class_id, one.starts))
        refuse_if(in_line(index, refusal(one, gpu_class.name, now)))
        settled.append(one)
    promised = promised_of(request.tenant_id, list(classes), at=now)
    figures = queries.figures(request.tenant, list(classes.values()), at=now, target=namespaces[0], promised=promised)
    for index, one in enumerate(settled):
        refuse_if(in_line(index, _growth(one, classes[one.line.gpu_class_id], figures)))
    excesses = _excesses([one for one in settled if one.decision.approve], classes, figures, promised)
    refuse_if(policy.may_over_promise(excesses, is_ticked=over_promise.is_ticked, reason=over_promise.reason))
    for one in settled:
        facts = _plain(figures[one.line.gpu_class_id]) | dict(one.decision.measured)
        bases = promised.bases(one.line.gpu_class_id)
        _carry_out(one, bases, by=by, rule=rule, now=now, facts=facts, over_promise=over_promise)
    _hint(request.tenant, namespaces)
    _tell(request, settled, excesses, over_promise, by=by, subject=subject)
    return request


def lock(tenant: Tenant, class_ids: QuerySet[QuotaLine, Any]) -> tuple[dict[int, GpuClass], list[Namespace]]:
    """What everybody locks, in this order, who decides about these classes for the team."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
    rows = GpuClass.objects.select_for_update(of=("self",), no_key=True).filter(pk__in=class_ids).order_by("pk")
    classes = {row.pk: row for row in rows}
    namespaces = Namespace.objects.select_for_update(of=("self",), no_key=True).filter(tenant=tenant).order_by("pk")
    return classes, list(namespaces.select_related("cluster"))


def _growth(one: Settled, gpu_class: GpuClass, figures: dict[int, queries.Figures]) -> Refusal | None:
    if not one.decision.approve:
        return None
    facts = policy.ClassFacts(
        gpu_class.slug,
        gpu_class.name,
        gpu_class.life_cycle,
        figures[gpu_class.pk].held,
        successor=catalog.successor_of(gpu_class),
    )
    return policy.growth_refusal(facts, kind=one.line.kind, units=one.units)


def _excesses(
    approved: list[Settled], classes: dict[int, GpuClass], figures: dict[int, queries.Figures], promised: Promised
) -> list[Excess]:
    """Where the approved lines would promise more than the class can give, and more than was promised before."""
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


def _plain(figures: queries.Figures) -> dict[str, Any]:
    return {**asdict(figures), "as_of": figures.as_of.isoformat() if figures.as_of else None}


def _carry_out(
    one: Settled,
    bases: Sequence[Grant],
    *,
    by: Actor,
    rule: str,
    now: datetime,
    facts: dict[str, Any],
    over_promise: OverPromise,
) -> None:
    """`bases`: the team's grants of this class that are not over and no boosts."""
    line = one.line
    decided: dict[str, Any] = {"decided_by": by.user, "decided_at": now, "reason": one.decision.reason[:500]}
    decided["rule"] = rule
    if not one.decision.approve:
        move(QuotaLine, line.pk, to=State.DENIED, facts=facts, **decided)
        return
    if over_promise.is_ticked:
        facts = {**facts, "over_promise": over_promise.reason[:500]}
    move(
        QuotaLine,
        line.pk,
        to=State.APPROVED,
        facts=facts,
        decided_units=one.units,
        decided_from=one.starts,
        decided_until=one.ends,
        decided_grace=one.grace if one.units else None,
        **decided,
    )
    if one.is_total:
        _end_running(bases, one)
    # A new total of nothing is the end of the running grant, and no grant of its own.
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


def _end_running(bases: Sequence[Grant], one: Settled) -> None:
    """Bring the running base grant's end forward to the new one's start: the only change a grant may have."""
    for grant in bases:
        if grant.period.upper <= one.starts or grant.period.lower >= one.ends:
            continue
        if grant.period.lower >= one.starts:
            text = (
                f"A total of {grant.units} is granted from {grant.period.lower:%d %b %Y, %H:%M %Z} on already. "
                "End this one before that, or start it later."
            )
            raise refuse("grant_overlaps", text, field="ends_at", status=409)
        Grant.objects.filter(pk=grant.pk).update(period=DateTimeTZRange(grant.period.lower, one.starts))


def _hint(tenant: Tenant, namespaces: Sequence[Namespace]) -> None:
    for namespace in namespaces:
        touch(Namespace, namespace.pk)
        # Woken, not touched: what is lent to everybody changes with promises, the catalog does not.
        wake(Pool, Pool.objects.filter(cluster_id=namespace.cluster_id).values_list("pk", flat=True))
        page_hint(namespace.name)
    # What the team's other pending requests would change is different now.
    wake(
        Plan,
        Plan.objects.filter(request__tenant=tenant, request__lines__state=State.PENDING).values_list("pk", flat=True),
    )


def _tell(
    request: QuotaRequest,
    settled: list[Settled],
    excesses: list[Excess],
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
        [request.filed_by, *queries.managers_of(tenant)],
        subject=subject or f"Decided: quota for {tenant.name}",
        body=letters.decided(answers) + address(f"/requests/{request.pk}"),
    )


def _answer(one: Settled) -> dict[str, Any]:
    line = one.line
    common = {"line": line.pk, "class": line.gpu_class.slug, "kind": line.kind, "reason": one.decision.reason}
    if "deputy_for" in one.decision.measured:
        common["deputy_for"] = one.decision.measured["deputy_for"]
    if not one.decision.approve:
        return {**common, "approved": False}
    dates = {"from": one.starts, "until": one.ends, "grace_hours": one.grace // timedelta(hours=1)}
    unit = {"unit": catalog.unit_of(line.gpu_class)} if line.gpu_class.is_storage else {}
    return {**common, "approved": True, "units": one.units, **unit, **dates}
