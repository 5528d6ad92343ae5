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
from catalog.models import GpuClass
from portal.due import touch
from tenants.models import Namespace
from workloads.ending import REMOVED, Ending
from workloads.models import Run, Workload
from workloads.telling import files_of, page_of, people_of

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


def start_again(run: Run, end: Ending) -> Run:
    """In the transaction that records the end of `run`, as it was asked for: its whole run time is before it again."""
    workload = run.workload
    number = run.number + 1
    spec = {**run.spec, "number": number}
    again = Run.objects.create(workload=workload, number=number, spec=spec, requested_by_id=run.requested_by_id)
    touch(Workload, workload.pk)
    team = workload.tenant
    event = record(
        RULE, "workload.brought_back", workload, tenant=team.slug, after={"run": number, "reason": end.reason}
    )
    deliver(
        event,
        people_of(again),
        subject=f"{workload.name} of {team.name} was interrupted and starts again",
        body=(
            f"{workload.name} was interrupted. {end.message} It waits like everything else if there is no room. "
            f"{files_of(run)}\n\n{page_of(workload)}"
        ),
    )
    return again
