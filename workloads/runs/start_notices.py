"""Notifies people that a run which had to wait in the queue has started."""

from __future__ import annotations

from datetime import datetime, timedelta

from accounts.core.actor import system_actor
from accounts.events.actions import deliver, record
from workloads.core.notifications import page_url, recipients_of
from workloads.models import Run

START_RULE = system_actor("rule starts")
# Who waits for less than this still looks at the page.
WAITED = timedelta(minutes=2)


def tell_start(run: Run, ready_at: datetime) -> None:
    """Called once for each run, in the transaction that stores when it was ready."""
    admitted_at = run.admitted_at or ready_at
    if run.stop_requested_at is not None or admitted_at - run.requested_at < WAITED:
        return
    workload = run.workload
    event = record(START_RULE, "run.started", workload, tenant=workload.tenant.slug, after={"run": run.number})
    deliver(
        event,
        recipients_of(run),
        subject=f"{workload.name} of {workload.tenant.name} has started",
        body=f"{workload.name} has started, after it was queued.\n\n{page_url(workload)}",
    )
