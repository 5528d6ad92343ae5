"""Captures why a run failed and which steps it completed, while its pod still exists."""

from __future__ import annotations

from typing import Any

from cluster.manifests.run_spec import RunSpec
from workloads.core.observation import Observation
from workloads.models import Run
from workloads.runs.objects import run_secret
from workloads.status import failure_record, progress
from workloads.status.desired_run import DesiredRun
from workloads.status.outcome import RunOutcome


def captured_failure(run: Run, seen: Observation | None, end: RunOutcome) -> dict[str, Any]:
    """Returns {} if the failure has no explanation. One query if the run has secrets (their values are hidden in the
    texts, whatever they look like), otherwise none.
    """
    if seen is None or end.told is None:
        return {}
    spec = RunSpec.from_json(run.spec)
    wish = DesiredRun(
        kind=spec.kind,
        class_name="",
        class_slug=spec.gpu_class,
        units=spec.units,
        image=spec.image,
        number=run.number,
        requested_at=run.requested_at,
        volume=spec.claim,
        has_repository=bool(spec.repository),
        admitted_at=run.admitted_at,
        started_at=run.started_at,
        ready_at=run.ready_at,
    )
    return record_json(run, failure_record.FailureRecord(end.told, progress.completed_steps(wish, seen)))


def record_json(run: Run, record: failure_record.FailureRecord) -> dict[str, Any]:
    secrets = run_secret.secret_values(run.workload, RunSpec.from_json(run.spec))
    return failure_record.failure_record_json(record, secrets=secrets)
