"""The verb by which staff take units back with notice. It is decided, by somebody else, as every request is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from django.db import transaction

from accounts.actions import deliver, record
from accounts.actor import Actor
from portal.due import touch
from portal.errors import get_or_refuse, refuse_if
from portal.quota_bar import several
from tenants import letters, line_policy, policy, queries
from tenants.models import Plan, QuotaLine, QuotaRequest, Tenant
from tenants.policy import Taken
from tenants.queries import reclaims
from tenants.telling import address, hint_pages


@transaction.atomic
def reclaim(tenant_slug: str, *, lines: Sequence[Taken], justification: str, by: Actor) -> QuotaRequest:
    """Propose lower totals. The team's owners and managers hear of it now, with the notice; approvers decide.

    Raises Refused: not_found (404), not_allowed, own_team, not_your_class (403), already_pending, closed (409), the
    rest 422 with its field.
    """
    tenant = get_or_refuse(Tenant.objects.visible_to(by), slug=tenant_slug)
    refuse_if(line_policy.may_reclaim(by, queries.standing(by, tenant)))
    refuse_if(policy.request_refusal(lines, justification))
    now, because = queries.now(), justification.strip()
    held = reclaims.held_then(tenant, lines)
    decides = queries.decides(by)
    for index, taken in enumerate(lines):
        known = held.get(taken.gpu_class)
        if known:
            refuse_if(
                line_policy.in_line(index, line_policy.may_reclaim_class(by, known.slug, known.name, decides=decides))
            )
        refuse_if(line_policy.in_line(index, line_policy.taken_refusal(taken, known, now=now)))
    request = QuotaRequest.objects.create(tenant=tenant, filed_by=by.person, justification=because)
    rows = [_line(request, taken, held[taken.gpu_class]) for taken in lines]
    QuotaLine.objects.bulk_create(rows)
    touch(Plan, Plan.objects.create(request=request).pk)
    cut = [held[one.gpu_class] for one in lines]
    after = {"lines": [{**asdict(taken), "kind": QuotaLine.Kind.RECLAIM} for taken in lines]}
    event = record(by, "request.reclaimed", request, tenant=tenant.slug, after=after)
    sentences = [
        letters.taken(found.name, found.units, one, now, unit=found.unit) for one, found in zip(lines, cut, strict=True)
    ]
    what = " and ".join(sorted({several(one.unit) for one in cut}))
    body = "\n".join([*sentences, "", because, "", address(f"/requests/{request.pk}")])
    approvers = queries.approvers_of([row.gpu_class_id for row in rows], tenant=tenant)
    deliver(
        event,
        [person for person in approvers if person.pk != by.user_id],
        subject=f"To decide: {what} of {tenant.name} shall be taken back",
        body=body,
    )
    deliver(
        event,
        queries.managers_of(tenant),
        subject=f"{what[:1].upper()}{what[1:]} of {tenant.name} may be taken back",
        body=f"{by.name} proposes this; an approver decides. Say under the request what you need.\n\n{body}",
    )
    hint_pages(tenant)
    return request


def _line(request: QuotaRequest, taken: Taken, held: line_policy.Held) -> QuotaLine:
    return QuotaLine(
        request=request,
        tenant_id=request.tenant_id,
        gpu_class_id=held.pk,
        kind=QuotaLine.Kind.RECLAIM,
        asked_units=taken.units,
        asked_from=taken.starts,
        asked_until=held.ends,
    )
