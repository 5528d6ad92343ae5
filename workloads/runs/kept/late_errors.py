"""An error of a GPU that the node reported after the end of a run had been recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from django.utils import timezone

from portal.core.hints import page_hint
from workloads.core.observation import Observation
from workloads.models import Run, Workload
from workloads.runs.kept.failure_capture import record_json
from workloads.status import failure_record, workers
from workloads.status.explain.endings import node_errors

# The report may come this long after the end, and takes a moment to the mirror.
SETTLES_AFTER = node_errors.REPORTED_WITHIN + timedelta(seconds=10)


def record_late_errors(workload: Workload, look: Callable[[Run], Observation | None]) -> datetime | None:
    """Adds the error to the last run if that has failed without another cause. `look` is asked once, when all reports
    have come; until then, returns when that is. The pods of a failed run are still there.
    """
    run = Run.objects.filter(workload=workload, outcome=Run.Outcome.FAILED).order_by("-number").first()
    if run is None or run.ended_at is None or run.reason not in node_errors.UNEXPLAINED:
        return None
    settles_at = run.ended_at + SETTLES_AFTER
    if settles_at > timezone.now():
        return settles_at
    seen = look(run)
    pod = workers.failed_pod(seen.pods) if seen is not None else None
    found = node_errors.node_error(pod, seen.gpu_errors) if seen is not None and pod is not None else None
    kept = failure_record.failure_record_from_json(run.kept)
    if found is None or kept is None:
        return None
    kept = replace(kept, told=node_errors.with_node_error(kept.told, found))
    Run.objects.filter(pk=run.pk).update(
        reason=node_errors.REASON, message=f"{run.message} {found.sentence}"[:500], kept=record_json(run, kept)
    )
    page_hint(workload.namespace.name)
    return None
