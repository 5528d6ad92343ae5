"""The actions about delegates: an approver names a delegate for a period, and either of the two ends it."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from accounts.core.actor import Actor
from accounts.events.actions import deliver, record
from accounts.people.queries import user_at_verified_address
from portal.core.errors import Refused, get_or_refuse, refuse_if
from portal.ui.text import time_with_zone
from tenants.approvers import queries
from tenants.approvers.delegation import policy as delegation_policy
from tenants.core import queries as core_queries
from tenants.core.notifications import page_url
from tenants.models import Deputy


@transaction.atomic
def name_delegate(*, email: str, starts: datetime, ends: datetime, by: Actor) -> Deputy:
    """Lets the delegate decide, within the period, what this approver may decide at that moment. The delegate is
    notified.

    Raises Refused: not_allowed (403), nothing_to_give, suspended, has_delegate (409), unknown_person, is_self,
    bad_period (422).
    """
    refuse_if(delegation_policy.may_name_delegate(by, queries.rights_of(by)))
    email, now = email.strip().lower(), core_queries.database_now()
    person = user_at_verified_address(email)
    if person is None:
        raise Refused(delegation_policy.unknown_person(email))
    refuse_if(delegation_policy.delegate_refusal(email, is_active=person.is_active, is_self=person.pk == by.user_id))
    starts = max(starts, now)
    refuse_if(delegation_policy.delegation_period_refusal(starts, ends, now=now))
    row = Deputy.objects.create(approver=by.person, deputy=person, period=DateTimeTZRange(starts, ends))
    event = record(by, "deputy.named", row, after={"user": email, "from": starts, "until": ends})
    text = (
        f"From {time_with_zone(starts)} to {time_with_zone(ends)} you can decide the same requests as {by.name}, "
        "except your own requests and requests of your teams.\n\n"
    )
    deliver(event, [row.deputy], subject=f"You are a delegate of {by.name}", body=text + page_url("/inbox"))
    return row


@transaction.atomic
def end_delegation(delegation_id: int, *, by: Actor) -> Deputy:
    """Ends it at once; if both end it at the same time, one call succeeds. The other person is notified. Raises
    Refused: not_found (404), not_allowed (403), is_over (409).
    """
    rows = Deputy.objects.visible_to(by).select_for_update(of=("self",)).select_related("approver", "deputy")
    row = get_or_refuse(rows, pk=delegation_id)
    now = core_queries.database_now()
    is_over = row.ended_at is not None or row.period.upper <= now
    refuse_if(delegation_policy.may_end_delegation(by, approver=row.approver_id, deputy=row.deputy_id, is_over=is_over))
    row.ended_at = now
    row.save(update_fields=["ended_at"])
    event = record(by, "deputy.ended", row, after={"user": row.deputy.email})
    others = [person for person in (row.approver, row.deputy) if person.pk != by.user_id]
    subject = f"{row.deputy.name} is no longer a delegate of {row.approver.name}"
    deliver(event, others, subject=subject, body=page_url("/delegations"))
    return row
