"""What was interrupted comes back: a notebook whose pod was taken off its node, a job whose units were taken back.

JupyterLab ends with 0 when it is asked to go, so that its Job counts as complete; a job's process ends with another
code, so that its Job may count as failed, though the queue would have started it again. Neither makes another pod: the
portal makes another run of the same spec. A pod that is taken off again and again stays away: somebody has to look.

The place in the queue goes with the failed Job: Kueue orders by when it first saw a Job and takes no other word for it,
and a pod that is ended by a suspension carries no sign by which the Job's failure policy could spare it.
"""

from __future__ import annotations

from accounts.actions import deliver, record
from accounts.actor import system
from accounts.models import Event
from catalog.models import GpuClass
from portal.due import touch
from tenants.models import Namespace
from workloads.ending import COMES_BACK, REMOVED, TAKEN_BACK, Ending
from workloads.ending import INTERRUPTED as INTERRUPTED_ENDS
from workloads.interrupting import costs
from workloads.interruption import Interrupted, told
from workloads.models import Run, Workload
from workloads.queries.interruptions import BROUGHT_BACK, INTERRUPTED, earlier_of, last_told, told_in
from workloads.seen import Seen
from workloads.telling import page_of, people_of

TIMES = 3
RULE = system("rule interrupted notebooks")


def comes_back(run: Run, reason: str) -> bool:
    """Two queries at most, of a run that was interrupted alone. `reason`: of its end, which is not recorded yet."""
    workload = run.workload
    if reason == REMOVED:
        earlier = Run.objects.filter(workload=workload, number__lt=run.number).order_by("-number")[:TIMES]
        reasons = list(earlier.values_list("reason", flat=True))
        if len(reasons) == TIMES and set(reasons) == {REMOVED}:
            return False
    there = Namespace.objects.filter(pk=workload.namespace_id, wanted=Namespace.Wanted.ACTIVE)
    is_open = {"slug": run.spec["gpu_class"], "life_cycle": GpuClass.LifeCycle.ACTIVE}
    return there.filter(**{f"cluster__classes__{name}": value for name, value in is_open.items()}).exists()


def is_brought_back(run: Run) -> bool:
    """Of one that has ended: the next number is its own work again, not what somebody else started."""
    return run.reason in INTERRUPTED_ENDS and run.message.endswith(COMES_BACK)


def start_again(run: Run, end: Ending, seen: Seen | None = None) -> Run:
    """In the transaction that records the end of `run`, as it was asked for: its whole run time is before it again.

    An interruption that people were told of already, moments before its Job failed by it, is not told twice.
    """
    workload = run.workload
    number = run.number + 1
    spec = {**run.spec, "number": number}
    before = last_told([run]).get(run.pk)
    found, is_told = _interrupted(end, seen, before)
    same = {"spec": spec, "priority": run.priority, "requested_by_id": run.requested_by_id, "group": run.group}
    again = Run.objects.create(workload=workload, number=number, **same)
    touch(Workload, workload.pk)
    team = workload.tenant
    after = {"run": number, "reason": end.reason, "at": found.at, "rule": found.rule, "times": found.times}
    event = record(RULE, BROUGHT_BACK, workload, tenant=team.slug, after=after)
    if not is_told:
        deliver(
            event,
            people_of(again),
            subject=f"{workload.name} of {team.name} was interrupted and starts again",
            body=(
                f"{workload.name}: {found.sentence} {end.message} It waits like everything else if there is no room. "
                f"{costs(run)}\n\n{page_of(workload)}"
            ),
        )
    return again


def _interrupted(end: Ending, seen: Seen | None, before: Event | None) -> tuple[Interrupted, bool]:
    """And whether it was told already. The Job's watch may be ahead of that of the queue's Workload, whose word is of
    an earlier time then, or missing.
    """
    queue = seen.queue if seen is not None and end.reason == TAKEN_BACK else None
    condition = queue.condition("Preempted") if queue is not None and queue.is_true("Preempted") else None
    earlier = earlier_of(before)
    if queue is None or condition is None:
        times = told_in(before).times if before is not None else 0
        return Interrupted(end.at, "", times + 1, cause=end.reason), False
    found = told(condition, earlier + max(1, queue.preemptions))
    is_told = before is not None and before.verb == INTERRUPTED and before.after["times"] == found.times
    return found, is_told
