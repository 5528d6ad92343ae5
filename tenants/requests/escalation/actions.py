"""Notifies all who may decide a request that is pending too long, once, when a worker checks its plan.

No timer is stored in advance, so a decision, withdrawal or question in time has nothing to undo.
"""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.db import transaction

from accounts.core.actor import system_actor
from accounts.events.actions import deliver, record
from accounts.events.queries import row_label
from accounts.models import Event, Role, User
from portal.ui.text import date_with_year
from tenants.approvers.queries import active_approvers, with_delegates
from tenants.core import queries
from tenants.core.notifications import page_url
from tenants.models import QuotaLine, QuotaRequest
from tenants.requests.queries import overdue_at, requests_asked_back


def escalate_if_overdue(request: QuotaRequest) -> datetime | None:
    """Notifies if the request is overdue. Returns when to check again; None: not by the clock. One query until it is
    overdue.

    The request must have pending lines.
    """
    due_at = overdue_at(request.filed_at)
    if due_at > queries.database_now():
        return due_at
    _escalate(request)
    return None


@transaction.atomic
def _escalate(request: QuotaRequest) -> None:
    # A second worker waits here, and then finds the event.
    locked = QuotaRequest.objects.select_for_update(of=("self",), no_key=True).select_related("tenant")
    found = locked.get(pk=request.pk)
    is_told = Event.objects.filter(row=row_label(found), verb="request.overdue").exists()
    waits = QuotaLine.objects.filter(request=found, state=QuotaLine.State.PENDING).exists()
    if is_told or not waits or requests_asked_back([found.pk]):
        return
    days = settings.ESCALATE_AFTER_WORKING_DAYS
    event = record(system_actor("escalation"), "request.overdue", found, tenant=found.tenant.slug, after={"days": days})
    admins = User.objects.filter(is_active=True, roles__contains=[Role.ADMIN])
    approvers = with_delegates(active_approvers()).exclude(memberships__tenant=found.tenant)
    deliver(
        event,
        [person for person in (*approvers, *admins) if person.pk != found.filed_by_id],
        subject=f"Overdue: quota request of {found.tenant.name}",
        body=(
            f"Request #{found.pk} of {found.tenant.name} was submitted on {date_with_year(found.filed_at)} and has "
            f"been pending for more than {days} working days. Approvers of its classes can decide it. An administrator "
            f"can add another approver.\n\n{page_url(f'/requests/{found.pk}')}"
        ),
    )
