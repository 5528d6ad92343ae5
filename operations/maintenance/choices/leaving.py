"""The drain of a node: each run on it is stopped or moved, as was chosen.

A choice is written while its run is locked and the drain has not begun; here the runs are locked after it has begun. So
each choice that was accepted is read, and none is accepted after it was read.
"""

from __future__ import annotations

from collections.abc import Collection

from django.db import transaction
from django.db.models import Q

from accounts.events.actions import deliver, record
from operations.maintenance.choices.outcome import at_drain
from operations.maintenance.choices.policy import RESTART, STOP
from operations.maintenance.notifications import MAINTENANCE_RULE
from operations.models import Maintenance, MaintenanceNotice
from workloads.core.notifications import page_url, recipients_of
from workloads.core.queries import locked_runs
from workloads.interruption.loss import file_loss_of
from workloads.launch.stopping import request_stop
from workloads.models import Run
from workloads.runs.draining.actions import request_drain

STOPPED_REASON = "stopped_for_maintenance"


@transaction.atomic
def leave_node(row: Maintenance, run_ids: Collection[int], *, why: str) -> int:
    """Returns how many were not asked to leave before: a second call has no effect. `why`: a sentence that names the
    maintenance. People of a run that is moved are told when the queue has its units back. Nothing is asked of runs that
    cannot be moved and were not chosen to stop, or that end by themselves.

    Nobody is asked for a maintenance that was canceled, released or ended while the worker was at work: those lock its
    row, too.
    """
    open_row = Maintenance.objects.select_for_update().filter(pk=row.pk, ended_at=None)
    if not open_row.filter(cancel_requested_at=None, release_requested_at=None).exists():
        return 0
    rows = locked_runs().filter(pk__in=run_ids, ended_at=None, stop_requested_at=None)
    found = list(rows.select_related("workload__namespace", "workload__tenant").order_by("pk"))
    # A run of several workers may be moved off another node already. One whose time limit has come ends by itself.
    stopping, moving = ([run for run in found if at_drain(row, run).what == what] for what in (STOP, RESTART))
    for run in stopping:
        _stop(run, why)
    stage = MaintenanceNotice.Stage.MOVED
    notices = [MaintenanceNotice(maintenance=row, run=run, stage=stage) for run in moving]
    MaintenanceNotice.objects.bulk_create(notices, ignore_conflicts=True)
    return len(stopping) + request_drain([run.pk for run in moving], reason=why, by=MAINTENANCE_RULE)


def _stop(run: Run, why: str) -> None:
    workload = run.workload
    message = f"{why} It was chosen that it stops then, and does not start again."
    if not request_stop(workload, Q(pk=run.pk), reason=STOPPED_REASON, message=message):
        return
    after = {"run": run.number, "reason": why}
    event = record(MAINTENANCE_RULE, "workload.drain_stopped", workload, tenant=workload.tenant.slug, after=after)
    subject = f"{workload.name} of {workload.tenant.name} was stopped for maintenance"
    body = f"{message} {file_loss_of(run)}\n\n{page_url(workload)}"
    deliver(event, recipients_of(run), subject=subject, body=body)
