"""Restarts interrupted runs: a notebook whose pod was removed from its node, or a job that was preempted.

JupyterLab exits with 0 on a signal, so its Job counts as complete. A job's process exits with another code, so its Job
may count as failed although the queue would have started it again. Neither Job creates another pod, so the portal
creates another run of the same spec. A run whose pod is removed again and again is not restarted: a person has to check
it.

The place in the queue is lost with the failed Job, because Kueue orders by when it first saw a Job. The Job's failure
policy cannot ignore such a failure, because nothing in a pod shows that a suspension ended it.
"""

from __future__ import annotations

from accounts.core.actor import system_actor
from accounts.events.actions import deliver, record
from accounts.models import Event
from catalog.models import GpuClass
from portal.core.due import touch
from tenants.models import Namespace
from workloads.core.notifications import page_url, recipients_of
from workloads.core.observation import Observation
from workloads.interruption.loss import interruption_loss_of
from workloads.interruption.preemption import MAINTENANCE, Interruption, interruption_from_condition
from workloads.interruption.queries import (
    INTERRUPTED,
    REQUEUED,
    earlier_interruptions,
    interruption_from_event,
    last_interruption_events,
)
from workloads.launch.spec import new_identity
from workloads.models import Run, Workload
from workloads.status.outcome import REMOVED, TAKEN_BACK, RunOutcome

REQUEUE_LIMIT = 3
REQUEUE_RULE = system_actor("rule interrupted notebooks")


def may_requeue(run: Run, reason: str) -> bool:
    """At most two queries; called only for an interrupted run. `reason`: of its end, which is not recorded yet."""
    workload = run.workload
    if reason == REMOVED:
        earlier = Run.objects.filter(workload=workload, number__lt=run.number).order_by("-number")[:REQUEUE_LIMIT]
        reasons = list(earlier.values_list("reason", flat=True))
        if len(reasons) == REQUEUE_LIMIT and set(reasons) == {REMOVED}:
            return False
    there = Namespace.objects.filter(pk=workload.namespace_id, wanted=Namespace.Wanted.ACTIVE)
    is_open = {"slug": run.spec["gpu_class"], "life_cycle": GpuClass.LifeCycle.ACTIVE}
    return there.filter(**{f"cluster__classes__{name}": value for name, value in is_open.items()}).exists()


def requeue(run: Run, end: RunOutcome, seen: Observation | None = None) -> Run:
    """Creates the next run in the transaction that records the end of `run`, with the same spec and the full time
    limit.

    If an email about the preemption was sent just before the Job failed because of it, no second email is sent.
    """
    workload = run.workload
    number = run.number + 1
    spec = {**run.spec, "number": number, "identity": new_identity()}
    before = last_interruption_events([run]).get(run.pk)
    found, is_told = _interrupted(end, seen, before, len(run.disruptions))
    same = {"spec": spec, "priority": run.priority, "requested_by_id": run.requested_by_id, "group": run.group}
    again = Run.objects.create(workload=workload, number=number, **same)
    touch(Workload, workload.pk)
    team = workload.tenant
    after = {"run": number, "reason": end.reason, "at": found.at, "rule": found.rule, "times": found.times}
    event = record(REQUEUE_RULE, REQUEUED, workload, tenant=team.slug, after=after)
    if not is_told:
        deliver(
            event,
            recipients_of(again),
            subject=f"{workload.name} of {team.name} was interrupted and restarts",
            body=(
                f"{workload.name}: {found.sentence} {end.message} It is queued if there are no free units. "
                f"{interruption_loss_of(run)}\n\n{page_url(workload)}"
            ),
        )
    return again


def _interrupted(
    end: RunOutcome, seen: Observation | None, before: Event | None, disruptions: int
) -> tuple[Interruption, bool]:
    """Returns the interruption, and whether an email about it was sent already. The Job's watch may be ahead of the
    watch of the Kueue Workload, whose status is then older or missing.
    """
    queue = seen.queue if seen is not None and end.reason == TAKEN_BACK else None
    condition = queue.condition("Preempted") if queue is not None and queue.is_true("Preempted") else None
    is_move = end.reason == MAINTENANCE and before is not None and before.verb == INTERRUPTED
    if before is not None and is_move and before.after["reason"] == MAINTENANCE:
        return interruption_from_event(before), True
    earlier = earlier_interruptions(before)
    if queue is None or condition is None:
        times = interruption_from_event(before).times if before is not None else 0
        return Interruption(end.at, "", times + 1, cause=end.reason), False
    found = interruption_from_condition(condition, earlier + max(1, queue.preemptions) + disruptions)
    is_told = before is not None and before.verb == INTERRUPTED and before.after["times"] == found.times
    return found, is_told
