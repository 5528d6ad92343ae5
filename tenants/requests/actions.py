"""The actions that file and withdraw a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime

from django.db import transaction

from accounts.core.actor import Actor
from accounts.events.actions import deliver, record
from accounts.models import User
from portal.core.due import touch
from portal.core.errors import get_or_refuse, refuse, refuse_if
from tenants.approvers import queries as approver_queries
from tenants.core import queries as core_queries
from tenants.core.notifications import hint_team_pages, page_url
from tenants.grants import queries as grant_queries
from tenants.members import queries
from tenants.models import Plan, QuotaLine, QuotaRequest, Tenant
from tenants.requests import policy
from tenants.requests.decisions.actions import apply_decisions
from tenants.requests.decisions.types import LineState
from tenants.requests.policy import refusal_in_line
from tenants.requests.rules import actions as rule_actions
from tenants.requests.types import RequestedLine
from tenants.requests.usage_evidence import MeasureUsage

# ---- requests ----------------------------------------------------------------------------------------------------


@transaction.atomic
def file_request(
    tenant_slug: str,
    *,
    lines: Sequence[RequestedLine],
    justification: str,
    by: Actor,
    measure: MeasureUsage | None = None,
) -> QuotaRequest:
    """Requests new totals and temporary increases. Active rules decide at once; for the other lines the approvers of
    the classes are notified, and a worker computes what would change (Plan). Every page and API view passes `measure`.

    Raises Refused: not_found (404), not_allowed (403), already_pending, closed (409), the rest 422 with its field.
    """
    tenant = get_or_refuse(Tenant.objects.visible_to(by), slug=tenant_slug)
    refuse_if(policy.may_file(by, queries.standing_of(by, tenant)))
    refuse_if(policy.request_refusal(lines, justification))
    now = core_queries.database_now()
    facts = grant_queries.class_facts(tenant, [line.gpu_class for line in lines], at=now)
    request = create_request_rows(
        tenant, lines, facts, justification=justification.strip(), filed_by=by.person, now=now
    )
    plan = Plan.objects.create(request=request)
    touch(Plan, plan.pk)
    event = record(by, "request.filed", request, tenant=tenant.slug, after={"lines": [asdict(line) for line in lines]})
    filed = list(QuotaLine.objects.filter(request=request).order_by("pk"))
    by_rule = rule_actions.decide_by_rules(request, filed, measure=measure, at=now, decide=apply_decisions)
    class_ids = [line.gpu_class_id for line in filed if line.pk not in by_rule]
    deliver(
        event,
        approver_queries.approvers_of(class_ids, tenant=tenant) if class_ids else (),
        subject=f"{tenant.name} requests quota",
        body=f"{justification.strip()}\n\n" + page_url(f"/requests/{request.pk}"),
    )
    hint_team_pages(tenant)
    return request


def create_request_rows(
    tenant: Tenant,
    lines: Sequence[RequestedLine],
    facts: Mapping[str, grant_queries.RequestableClass],
    *,
    justification: str,
    filed_by: User,
    now: datetime,
) -> QuotaRequest:
    """Creates a request with its lines, each with its class by slug, in the transaction of an action that
    records it.
    """
    for index, asked in enumerate(lines):
        known = facts.get(asked.gpu_class)
        refuse_if(refusal_in_line(index, policy.line_refusal(asked, known.facts if known else None, now=now)))
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
def withdraw_request(request_id: int, *, by: Actor) -> QuotaRequest:
    """Withdraws all pending lines. Raises Refused: not_found (404), not_allowed (403), already_decided (409)."""
    request = get_or_refuse(QuotaRequest.objects.visible_to(by).select_related("tenant"), pk=request_id)
    standing = queries.standing_of(by, request.tenant)
    is_reclaim = request.lines.filter(kind=QuotaLine.Kind.RECLAIM).exists()
    refuse_if(policy.may_withdraw(by, standing, filed_by=request.filed_by_id, is_reclaim=is_reclaim))
    pending = QuotaLine.objects.filter(request=request, state=LineState.PENDING).order_by("pk")
    moved = pending.update(state=LineState.WITHDRAWN, decided_at=core_queries.database_now(), decided_by=by.user)
    if not moved:
        raise refuse("already_decided", "This request has no pending lines. Nothing was changed.", status=409)
    Plan.objects.filter(request=request).update(due_at=None)
    event = record(by, "request.withdrawn", request, tenant=request.tenant.slug, after={"lines": moved})
    if is_reclaim:
        deliver(
            event,
            queries.managers_of(request.tenant),
            subject=f"The quota reduction for {request.tenant.name} was withdrawn",
            body=f"{by.name} withdrew all pending lines. Their grants are not changed.\n\n"
            + page_url(f"/requests/{request.pk}"),
        )
    hint_team_pages(request.tenant)
    return request
