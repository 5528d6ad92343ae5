"""The worker's part of the time limit of a run: the deadline, the warnings before it, and the stop."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from accounts.core.actor import system_actor
from accounts.events.actions import deliver, record
from accounts.events.queries import row_label
from accounts.models import Event
from portal.core.hints import page_hint
from portal.ui.text import duration_text, time_with_zone
from workloads.core.notifications import page_url, recipients_of
from workloads.core.observation import Observation, running_since
from workloads.core.queries import locked_runs
from workloads.interruption.loss import file_loss_of
from workloads.launch.stopping import request_stop
from workloads.lifetime.run_time import policy as run_time_policy
from workloads.lifetime.run_time.queries import locked_run, total_minutes
from workloads.models import Run

TIME_OVER_REASON = "run_time_over"

RUN_TIME_RULE = system_actor("rule time limit")


def sync_deadline(run: Run, seen: Observation) -> bool:
    """Sets the deadline from the observation of the pod. Returns whether it has changed."""
    total = total_minutes(run)
    if total is None:
        return False
    ends_at = run.ends_at
    began = _began(run, seen)
    if began is not None:
        ends_at = began + timedelta(minutes=total)
    elif seen.pod is None and seen.queue is not None and not seen.queue.is_true("Admitted"):
        ends_at = None
    if ends_at == run.ends_at:
        return False
    # A concurrent extension wakes the row: the next reconcile includes it.
    rows = Run.objects.filter(pk=run.pk, ended_at=None, extended_minutes=run.extended_minutes)
    if not rows.update(ends_at=ends_at):
        return False
    run.ends_at = ends_at
    return True


def _began(run: Run, seen: Observation) -> datetime | None:
    pod = seen.pod
    since = running_since(pod) if pod is not None and pod.deleting_since is None else None
    # The cluster reports whole seconds; no time may be before the request.
    return None if since is None else max(since, run.requested_at)


def next_moment_of(run: Run) -> datetime | None:
    """Returns when the worker has to reconcile next because of the time limit."""
    total = total_minutes(run)
    if total is None or run.ends_at is None:
        return None
    return run_time_policy.next_moment(total, run.ends_at, timezone.now())


def warn_if_due(run: Run) -> None:
    """Sends each warning once, also with concurrent calls. No query while no warning is due."""
    total, now = total_minutes(run), timezone.now()
    if total is not None and run.ends_at is not None and run_time_policy.due_warning(total, run.ends_at, now):
        _warn(run.pk, now)


@transaction.atomic
def _warn(run_id: int, now: datetime) -> None:
    run = locked_run(run_id)
    total = total_minutes(run)
    if total is None or run.ends_at is None or run.stop_requested_at is not None or run.ended_at is not None:
        return
    lead = run_time_policy.due_warning(total, run.ends_at, now)
    if lead is None:
        return
    # An extension sets another deadline with its own warnings. After the last warning, the first one is not sent.
    after = {"run": run.number, "ends_at": run.ends_at.isoformat(), "lead_s": int(lead.total_seconds())}
    told = Event.objects.filter(row=row_label(run.workload), verb="run.reminded", after__run=run.number)
    if told.filter(after__ends_at=after["ends_at"], after__lead_s__lte=after["lead_s"]).exists():
        return
    workload, ends_at = run.workload, time_with_zone(run.ends_at)
    event = record(RUN_TIME_RULE, "run.reminded", workload, tenant=workload.tenant.slug, after=after)
    deliver(
        event,
        recipients_of(run),
        subject=f"{workload.name} of {workload.tenant.name} reaches its time limit at {ends_at}",
        body=(
            f"{workload.name} reaches its time limit of {duration_text(total)} at {ends_at}. "
            f"It is stopped then and its units are released. {file_loss_of(run)}\n\n"
            f"Extend it, or stop it before: {page_url(workload)}"
        ),
    )
    page_hint(workload.namespace.name)


@transaction.atomic
def end_overdue(run: Run) -> bool:
    """Requests the stop because the time limit is reached. Returns False if it is no longer reached."""
    over = Q(pk=run.pk, ends_at__lte=Now())
    rows = locked_runs().filter(over, ended_at=None, stop_requested_at=None)
    locked = rows.select_related("workload__tenant", "workload__namespace").first()
    if locked is None or locked.ends_at is None or (total := total_minutes(locked)) is None:
        return False
    message = run_time_policy.time_over_message(total, locked.extended_minutes, locked.ends_at)
    workload = locked.workload
    request_stop(workload, over, reason=TIME_OVER_REASON, message=message)
    after = {"run": locked.number, "ended": locked.ends_at, "minutes": total}
    event = record(RUN_TIME_RULE, "run.time_over", workload, tenant=workload.tenant.slug, after=after)
    deliver(
        event,
        recipients_of(locked),
        subject=f"{workload.name} of {workload.tenant.name} was stopped at its time limit",
        body=(
            f"{message} {workload.name} was stopped and its units are released. {file_loss_of(locked)}\n\n"
            f"Start it again, or change it first: {page_url(workload)}"
        ),
    )
    return True
