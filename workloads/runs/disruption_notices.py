"""Records interruptions that are no preemptions, and notifies people of each once: a pod that its node or the cluster
removed, and a Workload that Kueue evicted for another reason or that somebody deactivated.

The worker may look late: a removed pod is replaced at once, and the mirror keeps what was last seen of it
(`cluster.models.PodRemoval`). `Run.disruptions` has the keys of those that were recorded, so that a late or repeated
look records none twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from accounts.core.actor import system_actor
from accounts.events.actions import deliver, record
from accounts.models import Event
from cluster.manifests.run_spec import JOB
from cluster.reads.observed import Pod, parse_time
from workloads.core import workload_sql
from workloads.core.notifications import page_url, recipients_of
from workloads.core.observation import Observation, running_since
from workloads.interruption import preemption
from workloads.interruption.loss import file_loss_of, interruption_loss_of
from workloads.interruption.preemption import Interruption
from workloads.interruption.queries import INTERRUPTED, earlier_interruptions, last_interruption_events
from workloads.models import Run, Workload
from workloads.runs.node_removal import removal_notices
from workloads.status import outcome, queries
from workloads.status.explain.endings.pod_termination import PodTermination
from workloads.status.explain.endings.termination import explain_termination, termination_explanation
from workloads.status.types import Phase

DISRUPTION_RULE = system_actor("rule interruptions")
KEYS_KEPT = 200
_EVICTED = "EvictionByEvictionAPI"
# An eviction by Kueue this long after a drain belongs to it.
_AFTER_DRAIN = timedelta(minutes=5)


@dataclass(frozen=True)
class _Disruption:
    """`key`: the same for every look at this interruption; `cause`: a code of `preemption.CAUSES`; `at` None: before
    the last one of its kind. `node`: where a pod was removed, "" for an eviction by the queue. `is_evicted`: the pod,
    through the Eviction API.
    """

    key: str
    cause: str
    at: datetime | None
    node: str = ""
    is_evicted: bool = False


def record_disruptions(run: Run, seen: Observation) -> bool:
    """Records what is new in the order in which it happened, and returns whether something was. No query without a new
    disruption. A run that has ended meanwhile was interrupted before, which its history says; people are told its end.
    """
    if run.ended_at is not None or seen.job is None:
        return False
    is_over = outcome.outcome_of(seen, kind=run.workload.kind) is not None
    found = [*_of_removed(seen, is_over=is_over), *_of_pods(seen), *(() if is_over else _of_queue(run, seen))]
    new = [one for one in found if one.key not in run.disruptions]
    were_new = [_tell(run, one, is_over=is_over) for one in sorted(new, key=_moment)]
    return any(were_new)


def _moment(found: _Disruption) -> float:
    return found.at.timestamp() if found.at is not None else 0.0


def _of_removed(seen: Observation, *, is_over: bool) -> Iterator[_Disruption]:
    """If nobody watched, it is not known how a pod ended. If the Job has ended too, that end may be the pod's own."""
    for pod in seen.removed:
        may_have_succeeded = pod.phase == "Succeeded" or (is_over and pod.phase != "Failed")
        if pod.ran_since is not None and not may_have_succeeded:
            ended = PodTermination(pod.node, pod.reason, pod.message, pod.target.reason, pod.target.message)
            is_evicted = pod.target.reason == _EVICTED
            yield _Disruption(pod.uid, explain_termination(ended).reason, pod.target.since, pod.node, is_evicted)


def _of_pods(seen: Observation) -> Iterator[_Disruption]:
    gone = {pod.uid for pod in seen.removed}
    for pod in seen.pods:
        if pod.uid not in gone and _was_removed(pod) and running_since(pod) is not None:
            target = pod.condition("DisruptionTarget")
            at = target.since if target is not None else None
            is_evicted = target is not None and target.reason == _EVICTED
            reason = termination_explanation(pod).reason
            yield _Disruption(pod.uid, reason, at or pod.deleting_since, pod.node, is_evicted)


def _was_removed(pod: Pod) -> bool:
    """A pod that is still terminating may exit with 0: the end of its Job is then what happened."""
    return pod.phase == "Failed" and (pod.is_true("DisruptionTarget") or pod.reason == "Evicted")


def _of_queue(run: Run, seen: Observation) -> Iterator[_Disruption]:
    """Kueue counts its evictions by reason, and says only of the last one when it was."""
    if seen.queue is None:
        return
    evicted = seen.queue.condition("Evicted")
    for reason, times in sorted(seen.queue.evictions.items()):
        cause = preemption.eviction_cause(reason)
        if cause == preemption.DEACTIVATED and run.drain_requested_at is not None:
            cause = preemption.MAINTENANCE
        if reason == preemption.PREEMPTED or not times or (run.admitted_at is None and cause != preemption.DEACTIVATED):
            continue
        is_this = evicted is not None and evicted.is_true and evicted.reason == reason
        last_at = evicted.since if evicted is not None and is_this else None
        for number in range(_times_told(run, reason) + 1, times + 1):
            yield _Disruption(f"{reason}:{number}", cause, last_at if number == times else None)


def _times_told(run: Run, reason: str) -> int:
    told = (key.rpartition(":") for key in run.disruptions)
    return max((int(number) for name, _, number in told if name == reason), default=0)


@transaction.atomic
def _tell(run: Run, found: _Disruption, *, is_over: bool) -> bool:
    locked = Run.objects.select_for_update(no_key=True).get(pk=run.pk)
    if locked.ended_at is not None or found.key in locked.disruptions:
        return False
    last = last_interruption_events([locked]).get(locked.pk)
    earlier = earlier_interruptions(last)
    is_after_drain = _is_after_drain(run, found, last)
    found = replace(found, cause=preemption.REQUEUED_AFTER_DRAIN if is_after_drain else found.cause)
    found = replace(found, cause=removal_notices.cause_of(run, found.node, found.cause, is_evicted=found.is_evicted))
    run.disruptions = [*locked.disruptions, found.key][-KEYS_KEPT:]
    Run.objects.filter(pk=run.pk).update(disruptions=run.disruptions)
    times = earlier + run.preemptions + len(run.disruptions)
    told = Interruption(found.at, "", times, cause=found.cause)
    workload = run.workload
    after = {
        "run": run.number,
        "at": found.at,
        "rule": "",
        "reason": found.cause,
        "times": times,
        "earlier": earlier,
    }
    event = record(DISRUPTION_RULE, INTERRUPTED, workload, tenant=workload.tenant.slug, after=after)
    # Of the drain itself people are told already.
    if run.stop_requested_at is None and not is_over and not is_after_drain:
        deliver(
            event,
            recipients_of(run),
            subject=f"{workload.name} of {workload.tenant.name} was interrupted",
            body=f"{workload.name}: {told.sentence} {_what_follows(run, found)}\n\n{page_url(workload)}",
        )
    return True


def _is_after_drain(run: Run, found: _Disruption, last: Event | None) -> bool:
    """Kueue evicts a run whose pod was drained as it does at a failure of the node, if no other node is free."""
    if found.node or found.cause != preemption.NODE_LOST or last is None:
        return False
    is_drain = last.after.get("reason") == preemption.DRAIN and last.after.get("run") == run.number
    at = found.at or timezone.now()
    return is_drain and abs(at - (parse_time(last.after.get("at")) or last.at)) < _AFTER_DRAIN


def _what_follows(run: Run, found: _Disruption) -> str:
    if found.cause == preemption.MAINTENANCE:
        return f"{run.drain_reason} {interruption_loss_of(run)}"
    row = queries.workload_rows(workload_sql.with_related(Workload.objects.filter(pk=run.workload_id)))[0]
    told = row.status.explained
    if found.cause == preemption.DEACTIVATED and told is not None:
        return f"{told.sentence} {told.remedy} {file_loss_of(run)}"
    if row.status.phase is Phase.BLOCKED:
        return f"{interruption_loss_of(run)} It does not run now: {row.status.sentence}"
    if run.workload.kind != JOB and row.status.phase in (Phase.READY, Phase.RUNNING):
        return f"{interruption_loss_of(run)} It is running again."
    return interruption_loss_of(run)
