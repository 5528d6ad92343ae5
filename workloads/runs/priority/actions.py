"""Operators change the priority of a queued run. It is recorded here, and the worker applies it.

Kueue reads the priority from a label of the Job as long as the Job exists. Nothing else that is sent for a run ever
changes. The new priority holds for this run and for the runs that replace it after an interruption. The next run that a
person starts has the priority of the workload's declaration.
"""

from __future__ import annotations

from django.db import transaction

from accounts.core.actor import Actor
from accounts.events.actions import deliver, record
from catalog.models import GpuClass
from portal.core.due import touch
from portal.core.errors import refuse, refuse_if
from portal.core.hints import page_hint
from workloads.core import queries
from workloads.core.notifications import page_url, recipients_of
from workloads.core.unit_sql import priority_of
from workloads.launch import queries as launch_queries
from workloads.launch.options import Options
from workloads.launch.priorities import policy as workloads_priority_policy
from workloads.launch.priorities import queries as priority_queries
from workloads.models import Run, Workload
from workloads.runs.priority import policy as priority_policy


@transaction.atomic
def set_priority(tenant: str, name: str, priority: str, *, because: str, by: Actor) -> Run:
    """Setting the same priority again changes nothing. Production priority stays within the team's quota and the
    class's limit.

    Raises Refused: not_found (404), not_allowed (403), not_running, not_waiting (409), bad_priority, reason_missing,
    priority_beyond_grant, production_limit (422).
    """
    namespace, _team = queries.team(by, tenant)
    workload = queries.undeleted_workload(by, namespace, name)
    refuse_if(priority_policy.may_set_priority(by))
    because = " ".join(because.split())
    run = queries.locked_active_run(workload)
    refuse_if(
        priority_policy.may_change_priority(
            priority,
            because,
            is_over=run is None,
            is_stopping=run is not None and run.stop_requested_at is not None,
            holds_units=run is not None and run.holds_units,
        )
    )
    assert run is not None
    before = priority_of(run)
    if priority == before:
        return run
    run.workload = workload
    gpu_class = GpuClass.objects.filter(cluster=namespace.cluster, slug=run.spec["gpu_class"]).first()
    if gpu_class is None:
        raise refuse("class_not_active", "The class of this run is no longer in the catalog.", status=409)
    facts = launch_queries.class_facts(namespace, gpu_class, units=1, by=by)
    said = Options(priority=priority, workers=run.workers)
    refuse_if(workloads_priority_policy.may_be_production(facts, int(run.spec["units"]), said))
    units = run.total_units
    refuse_if(priority_queries.production_refusal(namespace, gpu_class, priority=priority, units=units, besides=name))
    Run.objects.filter(pk=run.pk).update(priority=priority)
    run.priority = priority
    touch(Workload, workload.pk)
    after = {"run": run.number, "priority": priority, "because": because}
    event = record(by, "workload.priority_changed", workload, tenant=tenant, before={"priority": before}, after=after)
    deliver(
        event,
        recipients_of(run),
        subject=f"{name} of {workload.tenant.name} now has the priority {priority}",
        body=(
            f"{by.name} changed the priority of {name}, run {run.number}, from {before} to {priority}: {because}\n"
            f"The change applies to this run. The next run has the priority that {name} is configured with.\n\n"
            f"{page_url(workload)}"
        ),
    )
    page_hint(namespace.name)
    return run
