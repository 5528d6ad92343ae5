"""How a run ended, from what was seen of its Job and pods. Pure; the text is stored in the Run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from cluster.reads.observed import Job
from portal.ui.text import date_and_time
from workloads.core.observation import Observation, job_has_failed
from workloads.interruption.preemption import DEACTIVATED, MAINTENANCE
from workloads.status import workers
from workloads.status.explain.endings.node_errors import with_node_errors
from workloads.status.explain.endings.pod_termination import pod_termination
from workloads.status.explain.endings.termination import termination_explanation
from workloads.status.explain.types import Explanation

SUCCEEDED, FAILED, STOPPED, LOST_OUTCOME = "succeeded", "failed", "stopped", "lost"


@dataclass(frozen=True)
class RunOutcome:
    """`at` None: now, on the database's clock. `told`: for a failed run, its explanation with the cluster's text."""

    outcome: str
    reason: str
    message: str
    exit_code: int | None = None
    at: datetime | None = None
    told: Explanation | None = None


LOST = RunOutcome(
    LOST_OUTCOME,
    "job_deleted",
    "Its job was deleted in the cluster, outside the portal; its result is unknown.",
)
CLUSTER_REPLACED = RunOutcome(
    LOST_OUTCOME,
    "cluster_replaced",
    "The cluster was replaced by another one while it was queued or ran; its result is unknown. Start it again.",
)
REMOVED, TAKEN_BACK = "pod_removed", "units_taken_back"
POD_REMOVED = "Its pod was removed from its node in the cluster, outside the portal."
UNITS_TAKEN_BACK = "It was preempted by the queue while it ran."
# Ends that the run did not cause.
INTERRUPTED_REASONS = frozenset({REMOVED, TAKEN_BACK, MAINTENANCE})
RESTARTS_NOTE, NO_RESTART_NOTE = "It restarts automatically.", "Start it again."
NEVER_SUBMITTED = RunOutcome(STOPPED, "stopped", "Stopped before it was submitted to the cluster.")


def class_retired_outcome(class_name: str, until: datetime, *, was_admitted: bool) -> RunOutcome:
    """The class was retired, and the time until which its running workloads could continue has passed."""
    text = f"{class_name} was retired: running workloads could continue until {date_and_time(until)}."
    return RunOutcome(STOPPED, "class_retired", text if was_admitted else f"{text} It had not started.")


def team_closed_outcome(*, was_admitted: bool) -> RunOutcome:
    text = "The team was closed."
    return RunOutcome(STOPPED, "team_closed", text if was_admitted else f"{text} It had not started.")


def stopped_outcome(was_admitted: bool) -> RunOutcome:
    return RunOutcome(STOPPED, "stopped", "Stopped." if was_admitted else "Stopped while it was queued.")


def drained_outcome(found: RunOutcome, why: str) -> RunOutcome:
    """The end of a run that is moved off its node: the move is no decision against it. `why`: a sentence."""
    if found.reason not in (DEACTIVATED, REMOVED, TAKEN_BACK):
        return found
    return replace(found, reason=MAINTENANCE, message=f"It was moved off its node. {why}")


def outcome_of(seen: Observation, *, kind: str) -> RunOutcome | None:
    """Returns None while the Job has not ended."""
    if seen.job is None:
        return None
    if seen.job.is_true("Complete"):
        done = seen.job.condition("Complete")
        at = done.since if done else None
        if kind == "notebook" and all(pod.deleting_since is not None for pod in seen.pods):
            # JupyterLab exits with 0 on a signal, too. If its user shut it down, its pod still exists.
            return RunOutcome(STOPPED, REMOVED, POD_REMOVED, 0, at)
        if kind == "notebook":
            return RunOutcome(
                STOPPED, "shut_down", "Stopped: JupyterLab was shut down from inside the notebook.", 0, at
            )
        count = seen.job.completions or 1
        text = "Completed with exit code 0." if count == 1 else f"All {count} workers completed with exit code 0."
        return RunOutcome(SUCCEEDED, "completed", text, 0, at)
    return _failed(seen, seen.job) if job_has_failed(seen.job) else None


def _failed(seen: Observation, job: Job) -> RunOutcome:
    condition = job.condition("Failed") or job.condition("FailureTarget")
    at = condition.since if condition else None
    pod = workers.failed_pod(seen.pods)
    if job.suspend and seen.queue is not None and not seen.queue.active:
        # Another run would undo what somebody decided.
        by = f" by {seen.queue.inactive_by}" if seen.queue.inactive_by else ""
        text = f"It was deactivated in the cluster{by} while it ran: its Kueue Workload was set to inactive."
        return RunOutcome(STOPPED, DEACTIVATED, text, None if pod is None else pod_termination(pod).exit_code, at)
    if job.suspend or _was_decided_before_it_started(job):
        # The queue suspended the Job, the pod exited with its process's own code, and the Job failed because of it.
        # Decided from the Job alone: the queue's own status comes by another watch, maybe later.
        return RunOutcome(
            STOPPED, TAKEN_BACK, UNITS_TAKEN_BACK, None if pod is None else pod_termination(pod).exit_code, at
        )
    if pod is None:
        message = condition.message if condition else ""
        text = f"It failed. The cluster reports: {message}"[:500]
        told = Explanation("failed", text, raw=message, raw_from="the Job controller")
        return RunOutcome(FAILED, told.reason, text, None, at, told)
    told, ended = with_node_errors(termination_explanation(pod), pod, seen.gpu_errors), pod_termination(pod)
    theirs = workers.by_worker(seen.pods)[workers.index_of(pod)]
    was_retried = len(theirs) > 1 and (ended.comes_back or workers.crash_count(theirs) > 1)
    attempts = f" It failed after {len(theirs)} attempts." if was_retried else ""
    whose = f"Worker {workers.index_of(pod)}: " if (job.completions or 1) > 1 else ""
    return RunOutcome(FAILED, told.reason, f"{whose}{told.sentence}{attempts}", ended.exit_code, at, told)


def _was_decided_before_it_started(job: Job) -> bool:
    """The failure was decided while the Job was suspended: its start time is set again each time that the queue admits
    it.
    """
    decided = job.condition("FailureTarget")
    return (
        decided is not None
        and decided.since is not None
        and job.started_at is not None
        and decided.since < job.started_at
    )
