"""When the log of a run is kept, and how long the pods of an ended run stay."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from django.utils import timezone

from cluster.client.kube import Kube
from cluster.manifests import names
from cluster.manifests.run_spec import JOB, RunSpec
from cluster.models import AppliedObject
from workloads.core.observation import Observation
from workloads.logs import capture
from workloads.logs.selection import LOGS_PER_RUN
from workloads.models import Run, RunLog, Workload
from workloads.runs.objects import run_secret

# The pod of a finished job stays for a while, for members with kubectl; it uses no units.
KEEP_FINISHED_JOB = timedelta(hours=1)
# A node that did not answer at the end is not asked again at once.
AGAIN_AFTER = timedelta(minutes=1)
# Pods have 30 s to end.
KEEP_LAST_LINES = timedelta(seconds=40)


def keep_logs(run: Run, seen: Observation | None, *, kube: Kube, at_most: int = LOGS_PER_RUN) -> None:
    """Call it before the end is recorded, because afterwards the pods may be deleted. A deleted workload has no log."""
    if run.workload.delete_requested_at is None:
        secrets = run_secret.secret_values(run.workload, RunSpec.from_json(run.spec))
        capture.keep_logs(run, seen, secrets, kube=kube, at_most=at_most)


def keep_logs_of_stopped(run: Run, seen: Observation | None, job: AppliedObject | None, *, kube: Kube) -> None:
    """Before the Job is deleted; and again while the pods terminate, because the program may write then what it saved.
    The latter only for one worker, and not for long: the node may be dead.
    """
    if job is None or seen is None or not seen.pods:
        return
    if job.result == AppliedObject.Result.APPLIED:
        keep_logs(run, seen, kube=kube)
    elif job.result == AppliedObject.Result.TERMINATING and timezone.now() - job.sent_at < KEEP_LAST_LINES:
        keep_logs(run, seen, kube=kube, at_most=1)


def run_with_missed_log(workload: Workload, *, job: str) -> Run | None:
    """The ended run of this Job, if a log of it could not be read in time at the end. Its pods have stayed since, so it
    can be read again before they are deleted. One query.
    """
    ended = Run.objects.filter(workload=workload, ended_at__lt=timezone.now() - AGAIN_AFTER)
    missed = ended.filter(logs__problem__in=(RunLog.Problem.UNREACHABLE, RunLog.Problem.TOO_SLOW)).distinct()
    return next((run for run in missed if names.run_name(workload.name, run.number) == job), None)


def delete_logs(workload: Workload) -> None:
    RunLog.objects.filter(run__workload=workload).delete()


def jobs_that_stay(workload: Workload, sent: Mapping[tuple[str, str], AppliedObject]) -> dict[str, datetime]:
    """Names of finished Jobs whose pods stay → until when. A notebook's pod stays only if it failed."""
    if not sent:
        return {}
    worth = [Run.Outcome.FAILED, *([Run.Outcome.SUCCEEDED] if workload.kind == JOB else [])]
    recent = Run.objects.filter(workload=workload, ended_at__gt=timezone.now() - KEEP_FINISHED_JOB, outcome__in=worth)
    by_name = {
        names.run_name(workload.name, run.number): run.ended_at + KEEP_FINISHED_JOB
        for run in recent
        if run.ended_at is not None
    }
    return {name: until for name, until in by_name.items() if ("Job", name) in sent}
