"""One-time tickets: access from the portal to a notebook's own origin."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.events.actions import record
from portal.core.errors import refuse, refuse_if
from workloads.core import queries as core_queries
from workloads.core.queries import undeleted_workload
from workloads.credentials.notebook_token import digest
from workloads.gateway import policy as gateway_policy
from workloads.models import NotebookSession, Ticket, Workload

TICKET_LIFE = timedelta(seconds=30)

NOTEBOOK_SESSION_LIFE = timedelta(hours=24)


@dataclass(frozen=True)
class IssuedTicket:
    """A one-time ticket. Only the browser has `secret`; the portal stores its digest. `origin`: the notebook's host."""

    secret: str
    origin: str


@transaction.atomic
def issue_ticket(tenant: str, name: str, *, session_key: str, by: Actor) -> IssuedTicket:
    """Issues a ticket from the portal to the notebook's own origin, for this user and this portal session, valid for 30
    s.
    """
    namespace, team = core_queries.team(by, tenant)
    workload = undeleted_workload(by, namespace, name)
    facts = core_queries.run_facts(workload, core_queries.last_run(workload))
    refuse_if(gateway_policy.may_open(by, team, facts, workload.kind))
    person = by.person
    Ticket.objects.filter(user=person, expires_at__lte=Now()).delete()
    secret = secrets.token_urlsafe(32)
    Ticket.objects.create(
        digest=digest(secret),
        user=person,
        workload=workload,
        session_key=session_key,
        expires_at=timezone.now() + TICKET_LIFE,
    )
    record(by, "notebook.opened", workload, tenant=tenant)
    return IssuedTicket(secret, workload.origin)


@transaction.atomic
def redeem_ticket(secret: str, *, origin: str) -> str:
    """Exchanges the ticket for the secret of the cookie of the notebook's origin. The ticket works once, and only at
    that origin.

    Records no Event: it was recorded with the ticket. Raises Refused: ticket_spent (403).
    """
    mine = Workload.objects.filter(origin=origin, deleted_at=None)
    unspent = Ticket.objects.filter(digest=digest(secret), used_at=None, expires_at__gt=Now(), workload__in=mine)
    if not unspent.update(used_at=Now()):
        raise refuse(
            "ticket_spent",
            "This link was already used or is older than 30 s. Open the notebook from its page in the portal.",
            status=403,
        )
    ticket = Ticket.objects.get(digest=digest(secret))
    NotebookSession.objects.filter(user=ticket.user_id, expires_at__lte=Now()).delete()
    cookie = secrets.token_urlsafe(32)
    NotebookSession.objects.create(
        digest=digest(cookie),
        user_id=ticket.user_id,
        workload_id=ticket.workload_id,
        session_key=ticket.session_key,
        expires_at=timezone.now() + NOTEBOOK_SESSION_LIFE,
    )
    return cookie
