"""The action that comments on a request, or requests information."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction

from accounts.core.actor import Actor
from accounts.events.actions import deliver, record
from accounts.models import NoticeKind, User
from portal.core.errors import get_or_refuse, refuse_if
from tenants.approvers import queries
from tenants.core.notifications import hint_team_pages, page_url
from tenants.members import queries as member_queries
from tenants.models import QuotaRequest, RequestComment
from tenants.requests.comments import policy
from tenants.requests.comments.queries import may_comment_on, mentioned_people

# Comments of one person on one request within this time are one mail.
MAIL_INTERVAL = timedelta(minutes=10)


@transaction.atomic
def comment_request(request_id: int, *, text: str, asks_back: bool = False, by: Actor) -> RequestComment:
    """Adds a comment. Notifies those whom it mentions (`@name`) and all persons concerned, except the author. Raises
    Refused: not_found (404), not_allowed (403), already_decided (409, when information is requested), bad_comment
    (422).
    """
    request = get_or_refuse(QuotaRequest.objects.visible_to(by).select_related("tenant", "filed_by"), pk=request_id)
    refuse_if(may_comment_on(by, request, asks_back=asks_back))
    text = text.strip()
    refuse_if(policy.comment_refusal(text))
    row = RequestComment.objects.create(request=request, author=by.person, text=text, asks_back=asks_back)
    event = record(by, "request.asked_back" if asks_back else "request.commented", request, tenant=request.tenant.slug)
    link = page_url(f"/requests/{request.pk}")
    mentioned = {person.pk: person for person in mentioned_people(text, request) if person.pk != by.user_id}
    deliver(
        event,
        mentioned.values(),
        subject=f"{by.name} mentioned you in request #{request.pk} of {request.tenant.name}",
        body=f"{text}\n\n{link}",
        one_in=MAIL_INTERVAL,
        kind=NoticeKind.MENTION,
    )
    asks = "requests information about" if asks_back else "commented on"
    deliver(
        event,
        [person for person in _concerned(request) if person.pk != by.user_id and person.pk not in mentioned],
        subject=f"{by.name} {asks} request #{request.pk} of {request.tenant.name}",
        body=f"{text}\n\n{link}",
        one_in=MAIL_INTERVAL,
    )
    hint_team_pages(request.tenant)
    return row


def _concerned(request: QuotaRequest) -> list[User]:
    """Returns the requester, the team's managers, and approvers who commented; without any, all who may decide it."""
    spoke = list(User.objects.filter(pk__in=request.comments.values("author_id")))
    members = {person.pk for person in User.objects.filter(memberships__tenant=request.tenant)}
    approvers = [person for person in spoke if person.pk not in members]
    if not approvers:
        class_ids = list(request.lines.values_list("gpu_class_id", flat=True))
        approvers = queries.approvers_of(class_ids, tenant=request.tenant)
    return [request.filed_by, *member_queries.managers_of(request.tenant), *approvers]
