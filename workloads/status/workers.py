"""The workers of one run, from their pods: which pod belongs to which worker, how many are ready, and their combined
status. Pure.

A worker is the pod of one index of an Indexed Job, or the only pod of any other Job; its pod may be replaced by a
retry.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from cluster.manifests.workers import COMPLETION_INDEX
from cluster.reads.observed import Pod
from workloads.core.observation import Observation, running_since, true_since
from workloads.status.explain.endings.log_text import OF_OTHERS
from workloads.status.explain.endings.termination import termination_explanation

if TYPE_CHECKING:
    from workloads.status.types import Status

_AT_WORK = ("running", "ready", "succeeded")
# The status of the run is that of a worker in the first of these states.
_WORST = ("failed", "blocked", "unknown", "stopping", "queued", "preparing", "starting", *_AT_WORK)


def index_of(pod: Pod) -> int:
    text = pod.labels.get(COMPLETION_INDEX, "")
    return int(text) if text.isdigit() else 0


def by_worker(pods: Iterable[Pod]) -> dict[int, tuple[Pod, ...]]:
    """Returns the pods by index, oldest first."""
    found: dict[int, list[Pod]] = {}
    for pod in pods:
        found.setdefault(index_of(pod), []).append(pod)
    return {index: tuple(theirs) for index, theirs in sorted(found.items())}


def current_pods(pods: Iterable[Pod]) -> dict[int, Pod]:
    """Returns by index the pod that counts: the newest that is not terminating, otherwise the newest."""
    parts = {index: Observation(pods=theirs).pod for index, theirs in by_worker(pods).items()}
    return {index: pod for index, pod in parts.items() if pod is not None}


def observation_by_worker(seen: Observation) -> dict[int, Observation]:
    """Returns by index the observation of each worker alone. What is reported of the Job applies to all workers."""
    return {
        index: replace(
            seen,
            pods=pods,
            warnings=tuple(
                one
                for one in seen.warnings
                if one.object_kind != "Pod" or one.object_name in {pod.name for pod in pods}
            ),
            lost=seen.lost if seen.lost and seen.lost.name in {pod.node for pod in pods} else None,
        )
        for index, pods in by_worker(seen.pods).items()
    }


def slowest_pod(pods: Iterable[Pod]) -> Pod | None:
    """Returns the pod with the least progress; for one worker, its current pod."""
    return min(current_pods(pods).values(), key=_way, default=None)


def _way(pod: Pod) -> int:
    if pod.phase == "Failed":
        return 0
    if not pod.node:
        return 1
    return 4 if pod.is_over or pod.is_ready else 3 if running_since(pod) else 2


def ready_count(pods: Iterable[Pod]) -> int:
    """Returns how many workers are ready now or have succeeded."""
    return sum(pod.is_ready or pod.phase == "Succeeded" for pod in current_pods(pods).values())


def all_ready_since(pods: Iterable[Pod], workers: int) -> datetime | None:
    """Returns None while a worker is not ready."""
    moments = [true_since(pod, "Ready") for pod in current_pods(pods).values()]
    known = [at for at in moments if at is not None]
    return max(known) if len(known) >= workers else None


def crash_count(pods: Iterable[Pod]) -> int:
    """Counts the pods of one worker that failed by themselves or that a node rejected. Disruptions are not counted."""
    return sum(pod.phase == "Failed" and not pod.is_true("DisruptionTarget") for pod in pods)


def failed_pod(pods: Iterable[Pod]) -> Pod | None:
    """Returns the pod that made the run fail. Workers that are stopped because of it fail too, but later, and so do
    those that waited for it: that their program tells so counts, because times of the cluster are whole seconds.
    """
    worst: tuple[bool, int, float, Pod] | None = None
    for theirs in by_worker(pods).values():
        failed = [pod for pod in theirs if pod.phase == "Failed"]
        own = [pod for pod in failed if pod.deleting_since is None] or failed
        if not own:
            continue
        ended = max((one.ended_at for one in own[-1].containers if one.ended_at), default=None)
        times = len(own) if own[-1].deleting_since is None else 0
        is_cause = times > 0 and termination_explanation(own[-1]).reason not in OF_OTHERS
        found = (is_cause, times, -(ended.timestamp() if ended else 0.0), own[-1])
        if worst is None or found[:3] > worst[:3]:
            worst = found
    return worst[3] if worst else None


def retry_note(pods: Iterable[Pod], retries: int) -> str:
    """Describes the retry of one worker; "" for the first attempt, and if the crash was final."""
    done = crash_count(pods)
    return f"Retry {done} of {retries}." if retries and 0 < done <= retries else ""


def default_log_worker(pods: Iterable[Pod]) -> int:
    """Returns the worker whose log is shown if none was selected."""
    pods = tuple(pods)
    found = failed_pod(pods) if len(by_worker(pods)) > 1 else next(iter(pods), None)
    return index_of(found) if found is not None else min(by_worker(pods), default=0)


def combined_status(statuses: Mapping[int, Status], seen: Observation, retries: int) -> Status:
    """Returns the status of all workers together: how many are ready, and which one delays the run."""
    workers, count = len(statuses), ready_count(seen.pods)
    index, worst = min(statuses.items(), key=lambda one: (_WORST.index(str(one[1].phase)), one[0]))
    facts: dict[str, Any] = {"workers": workers, "ready": count}
    guilty = failed_pod(seen.pods)
    if str(worst.phase) == "failed" and guilty is not None:
        index, worst = index_of(guilty), statuses.get(index_of(guilty), worst)
    if str(worst.phase) in _AT_WORK:
        done = sum(str(one.phase) == "succeeded" for one in statuses.values())
        text = f"{count} of {workers} ready." if not done else f"{done} of {workers} completed, the others continue."
        if done == workers:
            text = f"All {workers} workers completed; the portal is recording their end."
        again = {number: retry_note(pods, retries) for number, pods in by_worker(seen.pods).items()}
        text = " ".join([text, *(f"Worker {number}: {note}" for number, note in again.items() if note)])
        at = max((one.since for one in statuses.values() if one.since is not None), default=None)
        return replace(worst, sentence=text, since=at, facts=facts)
    more = sum(one.reason == worst.reason for one in statuses.values()) - 1
    text = f"{count} of {workers} ready. Worker {index}{f' and {more} more' if more else ''}: {worst.sentence}"
    explained = replace(worst.explained, sentence=text) if worst.explained else None
    return replace(worst, sentence=text, explained=explained, facts={**worst.facts, **facts, "worker": index})
