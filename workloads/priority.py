"""The priority of a run that waits, changed by operators: our row says it, and the worker carries it out.

Kueue reads it from a label of the Job, all its life; of what is sent for a run it is the one thing that ever changes.
It holds for this run, and for those that bring it back after an interruption; the next one that a person starts is as
its workload was declared.
"""

from __future__ import annotations

from django.db import transaction

from accounts.actions import deliver, record
from accounts.actor import Actor
from catalog.models import GpuClass
from cluster.kube import ClusterRefused, Conflict, Kube, NotFound
from cluster.manifests.run import PRIORITY_LABEL
from cluster.models import AppliedObject
from portal.due import TryLater, touch
from portal.errors import get_or_refuse, refuse, refuse_if
from portal.hints import page_hint
from workloads import job_policy, queries
from workloads.models import Run, Workload
from workloads.options import Options
from workloads.queries import production
from workloads.queries.sizes import priority_of
from workloads.seen import Seen
from workloads.telling import page_of, people_of


@transaction.atomic
def set_priority(tenant: str, name: str, priority: str, *, because: str, by: Actor) -> Run:
    """What it is already changes nothing. Production keeps to what the team was promised, and to the class's limit.

    Raises Refused: not_found (404), not_allowed (403), not_running, not_waiting (409), bad_priority, reason_missing,
    priority_beyond_grant, production_limit (422).
    """
    namespace, _team = queries.team(by, tenant)
    rows = Workload.objects.visible_to(by).select_related("tenant")
    workload = get_or_refuse(rows.filter(delete_requested_at=None), namespace=namespace, name=name)
    refuse_if(job_policy.may_set_priority(by))
    because = " ".join(because.split())
    alive = Run.objects.select_for_update(of=("self",), no_key=True)
    run = alive.filter(workload=workload, ended_at=None).first()
    refuse_if(
        job_policy.may_move(
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
        raise refuse("class_not_active", "Its class is not in the catalog any more.", status=409)
    facts = queries.class_facts(namespace, gpu_class, units=1, by=by)
    said = Options(priority=priority, workers=run.workers)
    refuse_if(job_policy.may_be_production(facts, int(run.spec["units"]), said))
    units = run.total_units
    refuse_if(production.refusal(namespace, gpu_class, priority=priority, units=units, besides=name))
    Run.objects.filter(pk=run.pk).update(priority=priority)
    run.priority = priority
    touch(Workload, workload.pk)
    after = {"run": run.number, "priority": priority, "because": because}
    event = record(by, "workload.priority_changed", workload, tenant=tenant, before={"priority": before}, after=after)
    deliver(
        event,
        people_of(run),
        subject=f"{name} of {workload.tenant.name} waits as {priority} now",
        body=(
            f"{by.name} changed the priority of {name}, run {run.number}, from {before} to {priority}: {because}\n"
            f"It holds for this run; the next one that is started is as {name} was declared.\n\n{page_of(workload)}"
        ),
    )
    page_hint(namespace.name)
    return run


def carry_out(run: Run, job: AppliedObject, seen: Seen, *, kube: Kube) -> None:
    """Until Kueue says the same. Raises TryLater where the cluster does not take it."""
    if not run.priority or seen.queue is None or seen.queue.priority_class == run.priority:
        return
    try:
        labels = {PRIORITY_LABEL: run.priority}
        kube.relabel("Job", name=job.name, namespace=job.namespace, uid=job.uid, labels=labels)
    except (NotFound, Conflict):
        # Gone, or another one of its name: the next look finds that.
        return
    except ClusterRefused as refused:
        raise TryLater("priority_refused", refused.text) from refused
