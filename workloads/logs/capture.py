"""Reads the logs of a run that ends, while its pods exist, and keeps them.

It can be repeated: a log that was read replaces the row, a failed attempt does not. It takes at most a few seconds,
since the end of the run waits for it.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from datetime import timedelta

import structlog
from django.utils import timezone

from cluster.client.errors import ClusterRefused, ClusterUnavailable, Gone, NotFound
from cluster.client.kube import Kube
from cluster.client.log_end import LogRemoved, LogTooSlow, read_log_end
from workloads.core.observation import Observation
from workloads.logs.models import RunLog
from workloads.logs.retention import retention_days
from workloads.logs.selection import LOGS_PER_RUN, LogPlace, logs_to_keep
from workloads.logs.text import TEXT_BYTES, kept_text
from workloads.models import Run

log = structlog.get_logger(__name__)
# Of all logs of the run together. One log takes up to 0.5 s to be searched for secrets.
WITHIN_S = 5.0
ONE_WITHIN_S = 3.0
Problem = RunLog.Problem


def keep_logs(
    run: Run, seen: Observation | None, secrets: Collection[str], *, kube: Kube, at_most: int = LOGS_PER_RUN
) -> None:
    """Keeps nothing if the class keeps no logs, or while the mirror is unknown; otherwise there is a row for each
    worker, with the log or why it could not be read. `at_most`: workers.
    """
    if seen is None or (days := retention_days(run)) == 0:
        return
    expires_at = timezone.now() + timedelta(days=days)
    ends = time.monotonic() + WITHIN_S
    places = logs_to_keep(seen.pods)[:at_most]
    rows = [
        _read(RunLog(run=run, worker=place.worker, rank=rank, expires_at=expires_at), place, secrets, kube, ends)
        for rank, place in enumerate(places)
    ]
    if not rows and run.started_at is not None:
        rows = [RunLog(run=run, worker=0, rank=0, problem=Problem.NO_POD, expires_at=expires_at)]
    if places and at_most == LOGS_PER_RUN:
        # Of an earlier attempt, in which other workers failed.
        RunLog.objects.filter(run=run).exclude(worker__in=[place.worker for place in places]).delete()
    RunLog.objects.bulk_create([row for row in rows if row.problem], ignore_conflicts=True)
    RunLog.objects.bulk_create(
        [row for row in rows if not row.problem],
        update_conflicts=True,
        unique_fields=["run", "worker"],
        update_fields=["rank", "text", "is_truncated", "problem", "read_at", "expires_at"],
    )


def _read(row: RunLog, place: LogPlace, secrets: Collection[str], kube: Kube, ends: float) -> RunLog:
    if not place.container:
        row.problem = Problem.NOT_STARTED
        return row
    within_s = min(ONE_WITHIN_S, ends - time.monotonic())
    if within_s <= 0:
        row.problem = Problem.TOO_SLOW
        return row
    namespace = row.run.workload.namespace.name
    try:
        found = read_log_end(
            kube,
            namespace=namespace,
            pod=place.pod,
            container=place.container,
            bytes_max=TEXT_BYTES,
            within_s=within_s,
        )
    except (ClusterRefused, ClusterUnavailable, Gone, LogRemoved) as error:
        row.problem = _problem(error)
        log.info("log_not_kept", pod=place.pod, problem=str(row.problem), error=str(error))
        return row
    row.text, row.is_truncated = kept_text(found.data, is_truncated=found.is_truncated, secrets=secrets)
    return row


def _problem(error: Exception) -> RunLog.Problem:
    if isinstance(error, LogTooSlow):
        return Problem.TOO_SLOW
    if isinstance(error, LogRemoved | Gone):
        return Problem.REMOVED
    if isinstance(error, NotFound):
        return Problem.NO_POD
    return Problem.FORBIDDEN if isinstance(error, ClusterRefused) and error.status == 403 else Problem.UNREACHABLE
