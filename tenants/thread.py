"""What is said about a request: the verb, and the words as page and API show them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from accounts.actions import deliver, record
from accounts.actor import Actor
from accounts.models import User
from portal.errors import Refusal, get_or_refuse, refuse_if
from tenants import policy, queries
from tenants.models import QuotaLine, QuotaRequest, RequestComment
from tenants.telling import address, hint_pages


@dataclass(frozen=True)
class Comment:
    at: datetime
    who: str
    text: str
    asks_back: bool


@transaction.atomic
def comment_request(request_id: int, *, text: str, asks_back: bool = False, by: Actor) -> RequestComment:
    """Who is concerned and did not write it is told. Raises Refused: not_found (404), not_allowed (403),
    already_decided (409, asking back), bad_comment (422).
    """
    request = get_or_refuse(QuotaRequest.objects.visible_to(by).select_related("tenant", "filed_by"), pk=request_id)
    refuse_if(may_comment(by, request, asks_back=asks_back))
    text = text.strip()
    refuse_if(policy.comment_refusal(text))
    row = RequestComment.objects.create(request=request, author=by.person, text=text, asks_back=asks_back)
    event = record(by, "request.asked_back" if asks_back else "request.commented", request, tenant=request.tenant.slug)
    asks = "asks back about" if asks_back else "commented on"
    deliver(
        event,
        [person for person in _concerned(request) if person.pk != by.user_id],
        subject=f"{by.name} {asks} request #{request.pk} of {request.tenant.name}",
        body=f"{text}\n\n" + address(f"/requests/{request.pk}"),
    )
    hint_pages(request.tenant)
    return row


def may_comment(by: Actor, request: QuotaRequest, *, asks_back: bool = False) -> Refusal | None:
    """Four queries at most."""
    decides = queries.rights(by).classes_for(request.tenant_id, request.filed_by_id)
    lines = request.lines.all() if decides is None else request.lines.filter(gpu_class__slug__in=decides)
    return policy.may_comment(
        by,
        queries.standing(by, request.tenant),
        is_approver=lines.exists(),
        asks_back=asks_back,
        is_pending=request.lines.filter(state=QuotaLine.State.PENDING).exists(),
        is_filer=request.filed_by_id == by.user_id,
    )


def comments(request: QuotaRequest) -> list[Comment]:
    """Oldest first. One query."""
    return [comment(row) for row in rows_of(request)]


def rows_of(request: QuotaRequest) -> QuerySet[RequestComment]:
    return RequestComment.objects.filter(request=request).select_related("author")


def comment(row: RequestComment) -> Comment:
    return Comment(row.at, row.author.name, row.text, row.asks_back)


def _concerned(request: QuotaRequest) -> list[User]:
    """Who filed it, the team's managers, and the approvers who took part; before one did, all who may decide it."""
    spoke = list(User.objects.filter(pk__in=request.comments.values("author_id")))
    members = {person.pk for person in User.objects.filter(memberships__tenant=request.tenant)}
    approvers = [person for person in spoke if person.pk not in members]
    if not approvers:
        class_ids = list(request.lines.values_list("gpu_class_id", flat=True))
        approvers = queries.approvers_of(class_ids, tenant=request.tenant)
    return [request.filed_by, *queries.managers_of(request.tenant), *approvers]
