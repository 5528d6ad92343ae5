"""How a run ended, from what was seen of its Job and pods. Pure; the words stay in the Run for ever."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cluster.reads.observed import Job
from portal.ui.text import date_and_time
from workloads.core.observation import Observation
from workloads.status import workers
from workloads.status.explain.types import Explanation
from workloads.status.phase import pod_termination, termination_explanation

SUCCEEDED, FAILED, STOPPED, LOST_OUTCOME = "succeeded", "failed", "stopped", "lost"


@dataclass(frozen=True)
class RunOutcome:
    """`at` None: now, on the database's clock. `told`: of what failed, what explains it, with the text behind it."""

    outcome: str
    reason: str
    message: str
    exit_code: int | None = None
    at: datetime | None = None
    told: Explanation | None = None


LOST = RunOutcome(
    LOST_OUTCOME,
    "job_deleted",
    "Its job was deleted in the cluster, not through the portal; how it ended is not known.",
)
REMOVED, TAKEN_BACK = "pod_removed", "units_taken_back"
POD_REMOVED = "Its pod was taken off its node in the cluster, not through the portal."
UNITS_TAKEN_BACK = "Its units were taken back in the queue while it ran."
# What was done to a run, not by it.
INTERRUPTED_REASONS = frozenset({REMOVED, TAKEN_BACK})
RESTARTS_NOTE, NO_RESTART_NOTE = "It starts again by itself.", "Start it again."
NEVER_SUBMITTED = RunOutcome(STOPPED, "stopped", "Stopped before it was handed to the cluster.")


def class_retired_outcome(class_name: str, until: datetime, *, was_admitted: bool) -> RunOutcome:
    """A class that was retired: what ran on it might go on until then, and no longer."""
    text = f"{class_name} was retired: what ran on it might go on until {date_and_time(until)}."
    return RunOutcome(STOPPED, "class_retired", text if was_admitted else f"{text} It had not started.")


def team_closed_outcome(*, was_admitted: bool) -> RunOutcome:
    text = "The team was closed."
    return RunOutcome(STOPPED, "team_closed", text if was_admitted else f"{text} It had not started.")


def stopped_outcome(was_admitted: bool) -> RunOutcome:
    return RunOutcome(STOPPED, "stopped", "Stopped." if was_admitted else "Stopped while it waited in the queue.")


def outcome_of(seen: Observation, *, kind: str) -> RunOutcome | None:
    """None while the Job has not come to its end."""
    if seen.job is None:
        return None
    if seen.job.is_true("Complete"):
        done = seen.job.condition("Complete")
        at = done.since if done else None
        if kind == "notebook" and all(pod.deleting_since is not None for pod in seen.pods):
            # JupyterLab ends with 0 when it is asked to go, too. Shut down from inside, its pod would still be there.
            return RunOutcome(STOPPED, REMOVED, POD_REMOVED, 0, at)
        if kind == "notebook":
            return RunOutcome(STOPPED, "shut_down", "Stopped by you: JupyterLab was shut down from inside.", 0, at)
        count = seen.job.completions or 1
        text = "It ended with exit code 0." if count == 1 else f"All {count} workers ended with exit code 0."
        return RunOutcome(SUCCEEDED, "completed", text, 0, at)
    return _failed(seen, seen.job) if job_has_failed(seen.job) else None


def job_has_failed(job: Job) -> bool:
    """Of a Job that is suspended the controller decides it, and says it no sooner than the queue lets it start again:
    nothing of it would run then.
    """
    return job.is_true("Failed") or (job.suspend and job.is_true("FailureTarget"))


def _failed(seen: Observation, job: Job) -> RunOutcome:
    condition = job.condition("Failed") or job.condition("FailureTarget")
    at = condition.since if condition else None
    pod = workers.failed_pod(seen.pods)
    if job.suspend or _was_decided_before_it_started(job):
        # The queue suspended it, its pod left with what its process says to that, and the Job failed by it. Of the Job
        # alone: what the queue says of it is heard by another watch, maybe later.
        return RunOutcome(
            STOPPED, TAKEN_BACK, UNITS_TAKEN_BACK, None if pod is None else pod_termination(pod).exit_code, at
        )
    if pod is None:
        message = condition.message if condition else ""
        text = f"It failed. The cluster says: {message}"[:500]
        told = Explanation("failed", text, raw=message, raw_from="the Job controller")
        return RunOutcome(FAILED, told.reason, text, None, at, told)
    told, ended = termination_explanation(pod), pod_termination(pod)
    theirs = workers.by_worker(seen.pods)[workers.index_of(pod)]
    is_tried_again = len(theirs) > 1 and (ended.comes_back or workers.crash_count(theirs) > 1)
    tries = f" It was tried {len(theirs)} times." if is_tried_again else ""
    whose = f"Worker {workers.index_of(pod)}: " if (job.completions or 1) > 1 else ""
    return RunOutcome(FAILED, told.reason, f"{whose}{told.sentence}{tries}", ended.exit_code, at, told)


def _was_decided_before_it_started(job: Job) -> bool:
    """While it was suspended: a Job starts anew each time that the queue lets it."""
    decided = job.condition("FailureTarget")
    return (
        decided is not None
        and decided.since is not None
        and job.started_at is not None
        and decided.since < job.started_at
    )
