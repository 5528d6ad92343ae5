"""What is due for a namespace and for a request, in order: rules and mails, then the cluster.

A reconciler only makes the cluster match its row. The worker calls the functions here (tenants/tasks.py).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from cluster.client.kube import Kube
from cluster.models import AppliedObject
from portal.core.due import DONE, Deadline, Outcome, TryLater
from tenants.core.queries import database_now
from tenants.grants import queries as grant_queries
from tenants.grants.reminders import actions as reminders
from tenants.lifecycle.closing import actions as closing
from tenants.lifecycle.closing.schedule import is_volume_reminder_due
from tenants.lifecycle.trial_expiry import actions as trial_expiry
from tenants.models import Namespace, Plan, QuotaLine
from tenants.provisioning.alerts import actions as alerts
from tenants.provisioning.dry_run.reconcile import reconcile_plan
from tenants.provisioning.reconcile import reconcile_namespace
from tenants.provisioning.teardown.reconcile import RETRY_SOON, retained_claims, tear_down
from tenants.provisioning.teardown.release import forget_deleted_namespace
from tenants.requests.escalation import actions as escalation

NOT_APPLIED = frozenset(map(str, (AppliedObject.Result.REFUSED, AppliedObject.Result.FOREIGN)))


def work_on_namespace(row: Namespace, deadline: Deadline, *, kube: Kube) -> Outcome:
    """Handles unused trials, grant reminders, the cluster and alerts about refused objects; or closes the namespace."""
    now = database_now()
    if row.gone_at is not None:
        return DONE
    if row.closes_at is not None and row.closes_at <= now:
        return _close(row, deadline, now, kube=kube)
    expires_at = trial_expiry.check_idle(row, now)
    held = grant_queries.granted_units(row.tenant_id, now)
    # A team that is being closed cannot renew a grant.
    reminders.send_due_reminders(row, held.bases if row.closes_at is None else (), now)
    reminders.notify_ended_grants(row, held.ended)
    if row.origin == Namespace.Origin.UNADOPTED:
        return Outcome(clock=expires_at, is_applied=False)
    if row.origin == Namespace.Origin.ADOPTED:
        forget_deleted_namespace(row, kube=kube)
    try:
        outcome = reconcile_namespace(row, deadline, now=now, held=held, kube=kube)
    except TryLater as later:
        if later.code in NOT_APPLIED:
            alerts.alert_new_refusals(row)
        later.clock = _earliest(later.clock, expires_at)
        raise
    return replace(outcome, clock=_earliest(outcome.clock, expires_at))


def _close(row: Namespace, deadline: Deadline, now: datetime, *, kube: Kube) -> Outcome:
    if not closing.finalize_closing(row, now):
        return RETRY_SOON
    if row.origin == Namespace.Origin.ADOPTED:
        forget_deleted_namespace(row, kube=kube)
    if is_volume_reminder_due(row, now) and (claims := retained_claims(row)) != 0:
        closing.remind_of_volume_deletion(row, now, claims=claims)
    outcome = tear_down(row, deadline, kube=kube)
    if outcome is DONE:
        closing.mark_deleted(row, now)
    return outcome


def work_on_plan(row: Plan, deadline: Deadline, *, kube: Kube) -> Outcome:
    """Escalates a request that waits too long, then computes what an approval would change in the cluster."""
    if not QuotaLine.objects.filter(request=row.request, state=QuotaLine.State.PENDING).exists():
        return DONE
    # First, because it does not wait for the cluster.
    escalates_at = escalation.escalate_if_overdue(row.request)
    return replace(reconcile_plan(row, deadline, kube=kube), clock=escalates_at)


def _earliest(*moments: datetime | None) -> datetime | None:
    return min((at for at in moments if at is not None), default=None)
