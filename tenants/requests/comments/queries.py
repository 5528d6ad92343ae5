"""The comments on a request, and whether an actor may add one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, QuerySet

from accounts.core.actor import Actor
from accounts.models import User
from portal.core.errors import Refusal
from tenants.approvers import queries as approver_queries
from tenants.members import queries as member_queries
from tenants.models import QuotaLine, QuotaRequest, RequestComment
from tenants.requests.comments import policy as comment_policy
from tenants.requests.comments.mentions import mentioned_names

# Several people may have the same first part of an address.
CANDIDATES_MAX = 50


@dataclass(frozen=True)
class CommentRow:
    at: datetime
    who: str
    text: str
    asks_back: bool


def may_comment_on(by: Actor, request: QuotaRequest, *, asks_back: bool = False) -> Refusal | None:
    """Four queries at most."""
    decides = approver_queries.rights_of(by).classes_for(request.tenant_id, request.filed_by_id)
    lines = request.lines.all() if decides is None else request.lines.filter(gpu_class__slug__in=decides)
    return comment_policy.may_comment(
        by,
        member_queries.standing_of(by, request.tenant),
        is_approver=lines.exists(),
        asks_back=asks_back,
        is_pending=request.lines.filter(state=QuotaLine.State.PENDING).exists(),
        is_filer=request.filed_by_id == by.user_id,
    )


def mentioned_people(text: str, request: QuotaRequest) -> list[User]:
    """People whom the text mentions and who may see the request; others are left out without a word, so that a mention
    reveals neither the request to them nor their accounts to its author. One query, and one for each candidate.
    """
    names = mentioned_names(text)
    if not names:
        return []
    theirs = Q(email__in=[name for name in names if "@" in name])
    for name in names:
        theirs |= Q() if "@" in name else Q(email__startswith=f"{name}@")
    candidates = User.objects.filter(theirs, is_active=True).order_by("pk")[:CANDIDATES_MAX]
    return [one for one in candidates if _may_see(one, request)]


def _may_see(person: User, request: QuotaRequest) -> bool:
    return QuotaRequest.objects.visible_to(Actor(user=person, via="page")).filter(pk=request.pk).exists()


def comment_rows(request: QuotaRequest) -> list[CommentRow]:
    """Oldest first. One query."""
    return [comment_row(row) for row in comments_on(request)]


def comments_on(request: QuotaRequest) -> QuerySet[RequestComment]:
    return RequestComment.objects.filter(request=request).select_related("author")


def comment_row(row: RequestComment) -> CommentRow:
    return CommentRow(row.at, row.author.name, row.text, row.asks_back)
