"""Records in the Run and its allocation intervals what the mirror shows: admission, start, readiness, end."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Coalesce, Now

from portal.core.hints import page_hint
from workloads.allocations import recording as allocations
from workloads.core.observation import Observation, running_since, true_since
from workloads.lifetime.idle import reconcile as idle_reconcile
from workloads.lifetime.run_time import reconcile as run_time_reconcile
from workloads.models import Run
from workloads.runs import interruption_notices, start_notices
from workloads.runs.kept import failure_capture
from workloads.status import outcome as status_outcome
from workloads.status import workers


def record_state(run: Any, seen: Observation) -> None:
    """Fills each column once, with the first time seen; a restart after a preemption does not change it. What Kueue
    admits and takes back meanwhile are intervals.
    """
    ran = (*map(running_since, seen.pods), *(pod.ran_since for pod in seen.removed))
    found = {
        "admitted_at": true_since(seen.queue, "Admitted"),
        "started_at": min((at for at in ran if at is not None), default=None),
        "ready_at": workers.all_ready_since(seen.pods, run.workers),
    }
    # The cluster's times are whole seconds; no time may be before the request.
    new = {
        column: max(at, run.requested_at)
        for column, at in found.items()
        if at is not None and getattr(run, column) is None
    }
    has_other_end, is_told = (
        run_time_reconcile.sync_deadline(run, seen),
        interruption_notices.record_preemptions(run, seen),
    )
    is_other_allocation = run.has_queue and found["admitted_at"] != run.holds_since
    if not new and not is_told and not has_other_end and not is_other_allocation:
        return
    changes: dict[str, object] = {column: Coalesce(F(column), at) for column, at in new.items()}
    with transaction.atomic():
        if changes:
            Run.objects.filter(pk=run.pk).update(**changes)
        if is_other_allocation:
            allocations.record_admissions(run.pk)
        if "started_at" in new and not run.has_queue:
            allocations.record_start(run.pk)
        if "ready_at" in new:
            idle_reconcile.start_watch(run)
            interruption_notices.record_resumption(run, seen)
            start_notices.tell_start(run, new["ready_at"])
    for column, at in new.items():
        setattr(run, column, at)
    page_hint(run.workload.namespace.name)


def record_end(run: Run, end: status_outcome.RunOutcome, seen: Observation | None = None) -> bool:
    """Returns whether the run had not ended before."""
    with transaction.atomic():
        changed = Run.objects.filter(pk=run.pk, ended_at=None).update(
            ended_at=max(end.at, run.requested_at) if end.at else Now(),
            outcome=end.outcome,
            reason=end.reason[:60],
            message=end.message[:500],
            exit_code=end.exit_code,
            kept=failure_capture.captured_failure(run, seen, end),
        )
        if changed:
            allocations.record_admissions(run.pk)
            allocations.record_end(run.pk)
    if changed:
        page_hint(run.workload.namespace.name)
    return bool(changed)


def told_to_end(run: Any) -> datetime:
    """A run that ends after this time counts as stopped, whatever its exit code. Whole seconds, as in the cluster."""
    moments: tuple[datetime | None, ...] = (
        run.stop_requested_at,
        run.workload.delete_requested_at,
        run.closes_at,
        run.runs_until,
    )
    return min(at for at in moments if at is not None).replace(microsecond=0)
