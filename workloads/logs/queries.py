"""The kept log of a run, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from accounts.core.actor import Actor
from portal.core.errors import NOT_FOUND, Refused
from portal.ui.text import plural, time_with_zone
from workloads.core import queries
from workloads.logs.models import RunLog
from workloads.logs.retention import retention_days
from workloads.logs.selection import LOGS_PER_RUN
from workloads.models import Run, Workload

NO_POD = "There is no log: the pod has not started yet or was deleted."
_WHY = {
    RunLog.Problem.NO_POD: "its pod no longer existed",
    RunLog.Problem.NOT_STARTED: "its container never started",
    RunLog.Problem.FORBIDDEN: "the cluster did not allow the portal to read it",
    RunLog.Problem.REMOVED: "the node had removed it",
    RunLog.Problem.UNREACHABLE: "the node did not answer",
    RunLog.Problem.TOO_SLOW: "the node did not send it in time",
}


@dataclass(frozen=True)
class KeptLog:
    """`is_truncated`: earlier lines are missing."""

    run: int
    worker: int
    text: str
    is_truncated: bool
    read_at: datetime
    expires_at: datetime

    @property
    def note(self) -> str:
        """Says what the text is."""
        part = "the last part of the log" if self.is_truncated else "the log"
        until = time_with_zone(self.expires_at)
        return f"This is {part} of run {self.run}, kept {time_with_zone(self.read_at)}. It is deleted on {until}."


@dataclass(frozen=True)
class NoLog:
    """`is_final`: there will be none; otherwise the run may still write one."""

    sentence: str
    is_final: bool


def kept_log(
    by: Actor, tenant: str, name: str, number: int | None = None, worker: int | None = None
) -> KeptLog | NoLog:
    """Returns the log of the last run, or of the run with this number. `worker` None: the one that is shown by default.
    Raises Refused (404).
    """
    run = run_of(queries.visible_workload(by, tenant, name), number)
    if run is None:
        return NoLog(NO_POD, is_final=False)
    rows = RunLog.objects.filter(run=run)
    # A worker whose log was read comes first.
    found = (rows if worker is None else rows.filter(worker=worker)).order_by("problem", "rank").first()
    if found is not None and not found.problem:
        return KeptLog(run.number, found.worker, found.text, found.is_truncated, found.read_at, found.expires_at)
    if run.ended_at is None:
        return NoLog(NO_POD, is_final=False)
    return NoLog(_why_missing(run, found, worker), is_final=True)


def run_of(workload: Workload, number: int | None) -> Run | None:
    """Returns the run of this number, or the last; None if there is none yet. Raises Refused (404)."""
    if number is None:
        found = queries.last_run(workload)
    else:
        found = Run.objects.filter(workload=workload, number=number).first()
        if found is None:
            raise Refused(NOT_FOUND)
    if found is not None:
        found.workload = workload
    return found


def _why_missing(run: Run, found: RunLog | None, worker: int | None) -> str:
    if found is not None:
        return f"There is no log of run {run.number}: when it ended, {_WHY[RunLog.Problem(found.problem)]}."
    if run.started_at is None:
        return f"There is no log of run {run.number}: it never started."
    days = retention_days(run)
    if not days:
        return f"There is no log of run {run.number}: its class keeps no logs."
    if run.ended_at is not None and run.ended_at + timedelta(days=days) <= timezone.now():
        return f"There is no log of run {run.number}: logs of its class are kept for {plural(days, 'day')}."
    if worker is not None and RunLog.objects.filter(run=run).exists():
        rule = f"logs of at most {LOGS_PER_RUN} workers are kept, failed ones first"
        return f"There is no log of worker {worker} of run {run.number}: {rule}."
    return f"There is no log of run {run.number}: none was kept when it ended."
