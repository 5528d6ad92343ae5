"""The action by which staff reduce a team's quota with notice. Another person decides it, like every request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from django.db import transaction

from accounts.core.actor import Actor
from accounts.events.actions import deliver, record
from accounts.models import NoticeKind
from portal.core.due import touch
from portal.core.errors import get_or_refuse, refuse_if
from tenants.approvers import queries as approver_queries
from tenants.core import queries as core_queries
from tenants.core.notifications import hint_team_pages, page_url
from tenants.members import queries
from tenants.models import Plan, QuotaLine, QuotaRequest, Tenant
from tenants.requests import policy
from tenants.requests.reclaims import mails
from tenants.requests.reclaims import policy as reclaim_policy
from tenants.requests.reclaims import queries as reclaim_queries
from tenants.requests.types import ReclaimLine


@transaction.atomic
def file_reclaim(tenant_slug: str, *, lines: Sequence[ReclaimLine], justification: str, by: Actor) -> QuotaRequest:
    """Proposes lower totals. The team's owners and managers are notified now, with the notice period; approvers decide.

    Raises Refused: not_found (404), not_allowed, own_team, not_your_class (403), already_pending, closed (409), the
    rest 422 with its field.
    """
    tenant = get_or_refuse(Tenant.objects.visible_to(by), slug=tenant_slug)
    refuse_if(reclaim_policy.may_reclaim(by, queries.standing_of(by, tenant)))
    refuse_if(policy.request_refusal(lines, justification))
    now, because = core_queries.database_now(), justification.strip()
    held = reclaim_queries.reclaimable_totals(tenant, lines)
    decides = approver_queries.classes_decided_by(by)
    for index, taken in enumerate(lines):
        known = held.get(taken.gpu_class)
        if known:
            refuse_if(
                policy.refusal_in_line(
                    index, reclaim_policy.may_reclaim_class(by, known.slug, known.name, decides=decides)
                )
            )
        refuse_if(policy.refusal_in_line(index, reclaim_policy.reclaim_line_refusal(taken, known, now=now)))
    request = QuotaRequest.objects.create(tenant=tenant, filed_by=by.person, justification=because)
    rows = [_line(request, taken, held[taken.gpu_class]) for taken in lines]
    QuotaLine.objects.bulk_create(rows)
    touch(Plan, Plan.objects.create(request=request).pk)
    cut = [held[one.gpu_class] for one in lines]
    after = {"lines": [{**asdict(taken), "kind": QuotaLine.Kind.RECLAIM} for taken in lines]}
    event = record(by, "request.reclaimed", request, tenant=tenant.slug, after=after)
    sentences = [
        mails.reclaim_text(found.name, found.units, one, now, unit=found.unit, is_storage=found.is_storage)
        for one, found in zip(lines, cut, strict=True)
    ]
    body = "\n".join([*sentences, "", because, "", page_url(f"/requests/{request.pk}")])
    approvers = approver_queries.approvers_of([row.gpu_class_id for row in rows], tenant=tenant)
    deliver(
        event,
        [person for person in approvers if person.pk != by.user_id],
        subject=f"Decision needed: quota reduction for {tenant.name}",
        body=body,
    )
    deliver(
        event,
        queries.managers_of(tenant),
        subject=f"Proposed quota reduction for {tenant.name}",
        body=(
            f"{by.name} proposes this reduction; an approver decides. State what your team needs in a comment on the "
            f"request.\n\n{body}"
        ),
        kind=NoticeKind.TEAM,
    )
    hint_team_pages(tenant)
    return request


def _line(request: QuotaRequest, taken: ReclaimLine, held: reclaim_policy.ReclaimableTotal) -> QuotaLine:
    return QuotaLine(
        request=request,
        tenant_id=request.tenant_id,
        gpu_class_id=held.pk,
        kind=QuotaLine.Kind.RECLAIM,
        asked_units=taken.units,
        asked_from=taken.starts,
        asked_until=held.ends,
    )
