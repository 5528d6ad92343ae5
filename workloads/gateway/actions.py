"""One-time tickets: access from the portal to a notebook's own origin; and who may get one."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.events.actions import record
from accounts.events.queries import events_of_row
from portal.core.errors import refuse, refuse_if
from portal.core.hints import page_hint
from workloads.core import queries as core_queries
from workloads.core.queries import locked_active_run, undeleted_workload
from workloads.credentials.notebook_token import digest
from workloads.gateway import policy as gateway_policy
from workloads.models import NotebookSession, Run, Ticket, Workload

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

    Records each opening by its owner, and the first of each run by anybody else. Raises Refused: not_a_notebook,
    not_running, not_ready (409), not_allowed, private_notebook (403).
    """
    namespace, team = core_queries.team(by, tenant)
    workload = undeleted_workload(by, namespace, name)
    is_own = workload.created_by_id == by.user_id
    # Locked for others: of two that open it at the same moment, one records it.
    run = core_queries.last_run(workload) if is_own else locked_active_run(workload)
    facts = core_queries.run_facts(workload, run)
    refuse_if(gateway_policy.may_open(by, team, facts, workload.kind, workload.created_by.name))
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
    if run is not None and (is_own or not _has_opened(by, workload, run)):
        record(by, "notebook.opened", workload, tenant=tenant, after={"run": run.number})
    return IssuedTicket(secret, workload.origin)


def _has_opened(by: Actor, workload: Workload, run: Run) -> bool:
    theirs = events_of_row(workload).filter(verb="notebook.opened", actor_id=by.user_id)
    return theirs.filter(after__run=run.number).exists()


@transaction.atomic
def set_visibility(tenant: str, name: str, visibility: str, *, by: Actor) -> Workload:
    """Chooses who can open a notebook; the same choice again changes nothing. What others have open of a notebook that
    becomes private ends: see authorization.py.

    Raises Refused: not_found (404), not_allowed, missing_scope (403), not_a_notebook (409).
    """
    namespace, team = core_queries.team(by, tenant)
    workload = undeleted_workload(by, namespace, name)
    refuse_if(gateway_policy.may_share(by, team, core_queries.run_facts(workload, None), workload.kind))
    before = workload.visibility
    if Workload.objects.filter(pk=workload.pk).exclude(visibility=visibility).update(visibility=visibility):
        change = {"before": {"visibility": before}, "after": {"visibility": visibility}}
        record(by, "notebook.visibility_set", workload, tenant=tenant, **change)
        page_hint(namespace.name)
    return workload


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
