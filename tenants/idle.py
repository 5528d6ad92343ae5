"""Trials that nobody uses any more: closed by rule, through their namespace's clock, with a word before and after.

Idle since the last run ended and the last grant was over. A run, a grant to come or a request that waits keeps a trial.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Max

from accounts.actions import deliver, record
from accounts.actor import system
from accounts.models import Event
from accounts.queries import row_label
from tenants import life, queries
from tenants.models import Grant, Namespace, QuotaLine, Tenant
from tenants.queries.grants import OVER_AT
from tenants.rule_policy import STARTER
from tenants.telling import address

IDLE = timedelta(days=14)
WARN_BEFORE = timedelta(days=3)
AGAIN = timedelta(days=1)
RULE = system(f"rule {STARTER}")


def look(row: Namespace, at: datetime) -> datetime | None:
    """Warn or close what is due; when to look next. No query for a team that is no trial."""
    if not row.is_trial or row.wanted == Namespace.Wanted.CLOSED:
        return None
    since = idle_since(row, at)
    if since is None:
        return at + AGAIN
    if at < since + IDLE - WARN_BEFORE:
        return since + IDLE - WARN_BEFORE
    return _warn_or_close(row, at)


def idle_since(row: Namespace, at: datetime) -> datetime | None:
    """None: it is used. Runs are asked for by the name of their relation, since what runs is known further up."""
    team = Tenant.objects.filter(pk=row.tenant_id)
    runs = team.filter(workloads__runs__isnull=False)
    waits = QuotaLine.objects.filter(tenant_id=row.tenant_id, state=QuotaLine.State.PENDING)
    if runs.filter(workloads__runs__ended_at=None).exists() or waits.exists():
        return None
    last_run = runs.aggregate(at=Max("workloads__runs__ended_at"))["at"]
    last_grant = Grant.objects.filter(tenant_id=row.tenant_id).aggregate(at=Max(OVER_AT))["at"]
    found = max((moment for moment in (last_run, last_grant) if moment is not None), default=None)
    return found if found is not None and found <= at else None


@transaction.atomic
def _warn_or_close(row: Namespace, at: datetime) -> datetime | None:
    # The verbs of its life lock it too; a run that was begun meanwhile is seen here.
    rows = Namespace.objects.select_for_update(of=("self",), no_key=True).select_related("tenant")
    namespace = rows.get(pk=row.pk)
    since = idle_since(namespace, at)
    if since is None or namespace.wanted == Namespace.Wanted.CLOSED:
        return at + AGAIN
    told = Event.objects.filter(row=row_label(namespace), verb="trial.reminded").order_by("-id").first()
    if told is None or told.at < since:
        closes_at = max(since + IDLE, at + WARN_BEFORE)
        _warn(namespace, since, closes_at)
        return closes_at
    closes_at = datetime.fromisoformat(told.after["closes_at"])
    if at < closes_at:
        return closes_at
    because = f"Nothing has run in this trial since {since:%d %b %Y}."
    life.set_wanted(namespace.pk, to=Namespace.Wanted.CLOSED, because=because, grace_hours=0, by=RULE)
    return None


def _warn(namespace: Namespace, since: datetime, closes_at: datetime) -> None:
    team = namespace.tenant
    after = {"idle_since": since, "closes_at": closes_at}
    event = record(RULE, "trial.reminded", namespace, tenant=team.slug, after=after)
    body = (
        f"Nothing has run in {team.name} since {since:%d %b %Y}. It is closed on {closes_at:%d %b %Y, %H:%M %Z}; start "
        "something, or ask for quota, and it stays.\n\n" + address(f"/teams/{team.slug}")
    )
    subject = f"{team.name} is closed on {closes_at:%d %b %Y}"
    deliver(event, queries.managers_of(team), subject=subject, body=body)
