"""Keeps an idle run for some hours, once, and stops one for an operator; each with a reason."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.events.actions import deliver, record
from portal.core.due import touch
from portal.core.errors import NOT_FOUND, Refused, refuse_if
from portal.core.hints import page_hint
from portal.ui.text import with_full_stop
from usage.idle import policy
from usage.idle.evidence import measured_text
from usage.idle.models import IdleRun
from workloads.core import policy as core_policy
from workloads.core import queries as core_queries
from workloads.core.notifications import page_url, recipients_of
from workloads.interruption.loss import file_loss_of
from workloads.launch.stopping import request_stop
from workloads.models import NotebookWatch, Run, Workload

STOPPED_REASON = "idle_by_operator"


@transaction.atomic
def keep_idle(tenant: str, name: str, *, hours: int, reason: str, by: Actor) -> IdleRun:
    """The run is not stopped for being idle for this many hours from now, and its users are not notified again; neither
    by the rule of idle notebooks. Once for each idle stretch.

    Raises Refused: not_found (404), not_allowed (403), not_running, not_idle, already_kept (409), bad_hours, no_reason
    (422).
    """
    namespace, team = core_queries.team(by, tenant)
    workload = core_queries.undeleted_workload(by, namespace, name)
    run = core_queries.last_run(workload)
    found = core_queries.run_facts(workload, run)
    refuse_if(core_policy.may_manage(by, team, found, "keep"))
    row = _locked(run)
    kept_before = row is not None and row.kept_until is not None
    refuse_if(policy.may_keep(found, is_idle=row is not None, kept_before=kept_before, hours=hours, reason=reason))
    assert row is not None
    row.kept_until = timezone.now() + timedelta(hours=hours)
    row.kept_reason, row.kept_by, row.stops_at = " ".join(reason.split()), by.user, None
    row.save(update_fields=["kept_until", "kept_reason", "kept_by", "stops_at"])
    kept = {"kept_until": row.kept_until, "kept_reason": row.kept_reason, "kept_by": by.user}
    watches = NotebookWatch.objects.filter(Q(kept_until=None) | Q(kept_until__lt=row.kept_until), run=run)
    for pk in watches.values_list("pk", flat=True):
        NotebookWatch.objects.filter(pk=pk).update(**kept, warned_at=None, stops_at=None)
        touch(NotebookWatch, pk)
    after = {"kept_until": row.kept_until, "reason": row.kept_reason}
    record(by, "run.idle_kept", workload, tenant=tenant, after=after)
    page_hint(namespace.name)
    return row


@transaction.atomic
def stop_idle(tenant: str, name: str, *, reason: str, by: Actor) -> Workload:
    """For an operator: stops the run while it is idle, and tells its users the reason.

    Raises Refused: not_found (404) also to all others, not_running, not_idle (409), no_reason (422).
    """
    if not by.operates:
        raise Refused(NOT_FOUND)
    namespace, _team = core_queries.team(by, tenant)
    workload = core_queries.undeleted_workload(by, namespace, name)
    run = core_queries.last_run(workload)
    row = _locked(run)
    found = core_queries.run_facts(workload, run)
    refuse_if(policy.may_stop_idle(found, is_idle=row is not None, reason=reason))
    assert row is not None
    assert run is not None
    told, said = measured_text(row), with_full_stop(" ".join(reason.split()))
    message = f"Stopped by an operator: {said}"
    if request_stop(workload, Q(pk=run.pk), reason=STOPPED_REASON, message=message):
        after = {"run": run.number, "reason": said, "idle_since": row.idle_since, "evidence": told}
        event = record(by, "run.idle_stopped", workload, tenant=tenant, after=after)
        deliver(
            event,
            recipients_of(run),
            subject=f"{workload.name} of {workload.tenant.name} was stopped by an operator",
            body=f"{message} Its GPUs were idle: {told}. {file_loss_of(run)}\n\n{page_url(workload)}",
        )
    return workload


def _locked(run: Run | None) -> IdleRun | None:
    """Also while the last verdict was "unknown" it can be kept, but it is idle only if the newest verdict says so."""
    rows = IdleRun.objects.select_for_update(of=("self",), no_key=True)
    return rows.filter(run=run, is_idle=True).first() if run else None
