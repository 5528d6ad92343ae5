"""Records interruptions that are no preemptions, and notifies people of each once: a pod that its node or the cluster
removed, and a Workload that Kueue evicted for another reason or that somebody deactivated.

`Run.disruptions` has the keys of those that were recorded, so that a late or repeated look records none twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from accounts.core.actor import system_actor
from accounts.events.actions import deliver, record
from cluster.manifests.run_spec import JOB
from cluster.reads.observed import Pod
from workloads.core import workload_sql
from workloads.core.notifications import page_url, recipients_of
from workloads.core.observation import Observation, running_since
from workloads.interruption import preemption
from workloads.interruption.loss import file_loss_of, interruption_loss_of
from workloads.interruption.preemption import Interruption
from workloads.interruption.queries import INTERRUPTED, earlier_interruptions, last_interruption_events
from workloads.models import Run, Workload
from workloads.status import outcome, queries
from workloads.status.phase import termination_explanation
from workloads.status.types import Phase

DISRUPTION_RULE = system_actor("rule interruptions")
KEYS_KEPT = 200


@dataclass(frozen=True)
class _Disruption:
    """`key`: the same for every look at this interruption; `cause`: a code of `preemption.CAUSES`."""

    key: str
    cause: str
    at: datetime | None


def record_disruptions(run: Run, seen: Observation) -> bool:
    """Returns whether something new was recorded. No query without a new disruption."""
    found = [one for one in _disruptions(run, seen) if one.key not in run.disruptions]
    if not found or run.ended_at is not None or _has_ended(run, seen):
        return False
    were_new = [_tell(run, one) for one in found]
    return any(were_new)


def _has_ended(run: Run, seen: Observation) -> bool:
    """The end of the run is reported otherwise."""
    job = seen.job
    return job is None or job.is_true("Complete") or outcome.outcome_of(seen, kind=run.workload.kind) is not None


def _disruptions(run: Run, seen: Observation) -> Iterator[_Disruption]:
    for pod in seen.pods:
        if _was_removed(pod) and running_since(pod) is not None:
            target = pod.condition("DisruptionTarget")
            at = target.since if target is not None else None
            yield _Disruption(pod.uid, termination_explanation(pod).reason, at or pod.deleting_since)
    if seen.queue is None:
        return
    evicted = seen.queue.condition("Evicted")
    for reason, times in sorted(seen.queue.evictions.items()):
        cause = preemption.eviction_cause(reason)
        if reason == preemption.PREEMPTED or not times or (run.admitted_at is None and cause != preemption.DEACTIVATED):
            continue
        is_this = evicted is not None and evicted.is_true and evicted.reason == reason
        yield _Disruption(f"{reason}:{times}", cause, evicted.since if evicted is not None and is_this else None)


def _was_removed(pod: Pod) -> bool:
    """A pod that is still terminating may exit with 0: the end of its Job is then what happened."""
    return pod.phase == "Failed" and (pod.is_true("DisruptionTarget") or pod.reason == "Evicted")


@transaction.atomic
def _tell(run: Run, found: _Disruption) -> bool:
    locked = Run.objects.select_for_update(no_key=True).get(pk=run.pk)
    if locked.ended_at is not None or found.key in locked.disruptions:
        return False
    earlier = earlier_interruptions(last_interruption_events([locked]).get(locked.pk))
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
    if run.stop_requested_at is None:
        deliver(
            event,
            recipients_of(run),
            subject=f"{workload.name} of {workload.tenant.name} was interrupted",
            body=f"{workload.name}: {told.sentence} {_what_follows(run, found)}\n\n{page_url(workload)}",
        )
    return True


def _what_follows(run: Run, found: _Disruption) -> str:
    row = queries.workload_rows(workload_sql.with_related(Workload.objects.filter(pk=run.workload_id)))[0]
    told = row.status.explained
    if found.cause == preemption.DEACTIVATED and told is not None:
        return f"{told.sentence} {told.remedy} {file_loss_of(run)}"
    if row.status.phase is Phase.BLOCKED:
        return f"{interruption_loss_of(run)} It does not run now: {row.status.sentence}"
    if run.workload.kind != JOB and row.status.phase in (Phase.READY, Phase.RUNNING):
        return f"{interruption_loss_of(run)} It is running again."
    return interruption_loss_of(run)
