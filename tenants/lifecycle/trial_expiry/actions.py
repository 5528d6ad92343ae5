"""Closes unused trials automatically when their namespace is checked, with a mail before and after.

A trial is idle since its last run ended and its last grant was over. A run, a future grant or a pending request keeps
it.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction

from accounts.core.actor import system_actor
from accounts.events.actions import deliver, record
from accounts.events.queries import row_label
from accounts.models import Event
from portal.ui.text import date_with_year, time_with_zone
from tenants.core import queries as core_queries
from tenants.core.notifications import page_url
from tenants.lifecycle import actions as lifecycle_actions
from tenants.lifecycle.trial_expiry.queries import idle_since
from tenants.members import queries
from tenants.models import Namespace
from tenants.requests.rules.policy import STARTER

IDLE_MAX = timedelta(days=14)
WARN_BEFORE = timedelta(days=3)
CHECK_EVERY = timedelta(days=1)
RULE = system_actor(f"rule {STARTER}")


def check_idle(row: Namespace, at: datetime) -> datetime | None:
    """Warns or closes if due; returns when to check next. No query for a team that is not a trial."""
    if not row.is_trial or row.wanted == Namespace.Wanted.CLOSED:
        return None
    since = idle_since(row, at)
    if since is None:
        return at + CHECK_EVERY
    if at < since + IDLE_MAX - WARN_BEFORE:
        return since + IDLE_MAX - WARN_BEFORE
    return _warn_or_close(row, at)


@transaction.atomic
def _warn_or_close(row: Namespace, at: datetime) -> datetime | None:
    namespace = core_queries.lock_namespace(row.pk)  # a run that was begun meanwhile is seen from here on
    since = idle_since(namespace, at)
    if since is None or namespace.wanted == Namespace.Wanted.CLOSED:
        return at + CHECK_EVERY
    told = Event.objects.filter(row=row_label(namespace), verb="trial.reminded").order_by("-id").first()
    if told is None or told.at < since:
        closes_at = max(since + IDLE_MAX, at + WARN_BEFORE)
        _warn(namespace, since, closes_at)
        return closes_at
    closes_at = datetime.fromisoformat(told.after["closes_at"])
    if at < closes_at:
        return closes_at
    because = f"No workload has run in this trial since {date_with_year(since)}."
    lifecycle_actions.set_namespace_state(
        namespace.pk, to=Namespace.Wanted.CLOSED, because=because, grace_hours=0, by=RULE
    )
    return None


def _warn(namespace: Namespace, since: datetime, closes_at: datetime) -> None:
    team = namespace.tenant
    after = {"idle_since": since, "closes_at": closes_at}
    event = record(RULE, "trial.reminded", namespace, tenant=team.slug, after=after)
    body = (
        f"No workload has run in {team.name} since {date_with_year(since)}. The team will be closed on "
        f"{time_with_zone(closes_at)}. To keep it, launch a workload or request quota.\n\n"
        + page_url(f"/teams/{team.slug}")
    )
    subject = f"{team.name} will be closed on {date_with_year(closes_at)}"
    deliver(event, queries.managers_of(team), subject=subject, body=body)
