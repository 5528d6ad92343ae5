"""Extends the time limit of a run.

The time limit counts from the start of the container. For a preempted run it counts from the next start: the run lost
its progress and was queued in between. Until then the run has no deadline.
"""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.db.models import F

from accounts.core.actor import Actor
from accounts.events.actions import record
from catalog.models import GpuClass
from portal.core.due import touch
from portal.core.errors import refuse_if
from portal.core.hints import page_hint
from workloads.core import policy, queries
from workloads.launch import options
from workloads.lifetime.run_time import policy as run_time_policy
from workloads.lifetime.run_time.policy import TimeFacts
from workloads.lifetime.run_time.queries import locked_run, time_facts
from workloads.models import Run, Workload


@transaction.atomic
def extend(tenant: str, name: str, *, hours: int, by: Actor) -> Run:
    """Extends the time limit, at most to the class's limit counted from the start of the run.

    Raises Refused: not_found (404), not_allowed (403), not_running, no_end, not_started (409), exceeds_run_time (422).
    """
    namespace, team = queries.team(by, tenant)
    workload = queries.undeleted_workload(by, namespace, name)
    last = queries.last_run(workload)
    run = locked_run(last.pk) if last else None
    found = queries.run_facts(workload, run)
    refuse_if(policy.may_manage(by, team, found, "extend"))
    if run is None:
        refuse_if(run_time_policy.may_extend(found, TimeFacts(workload.gpu_class.name, None, None, None), hours))
        raise AssertionError("what never ran is over")
    gpu_class = _class_of(workload, run)
    refuse_if(run_time_policy.may_extend(found, time_facts(run, gpu_class), hours))
    more = timedelta(hours=hours)
    before = {"run": run.number, "ends_at": run.ends_at}
    Run.objects.filter(pk=run.pk).update(
        extended_minutes=F("extended_minutes") + hours * options.MINUTES_PER_HOUR, ends_at=F("ends_at") + more
    )
    run.refresh_from_db(fields=["extended_minutes", "ends_at"])
    touch(Workload, workload.pk)
    after = {"run": run.number, "ends_at": run.ends_at, "hours": hours}
    record(by, "run.extended", workload, tenant=tenant, before=before, after=after)
    page_hint(namespace.name)
    return run


def _class_of(workload: Workload, run: Run) -> GpuClass:
    """Returns the class of the run. One query if the workload was declared with another class since."""
    if run.spec["gpu_class"] == workload.gpu_class.slug:
        return workload.gpu_class
    return GpuClass.objects.get(cluster_id=workload.gpu_class.cluster_id, slug=run.spec["gpu_class"])
