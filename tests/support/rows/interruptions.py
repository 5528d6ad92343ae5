"""Runs that Kueue preempted, as rows."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from accounts.models import User
from catalog.classes.queries import flavor_name
from catalog.models import GpuClass
from cluster.models import MirrorPod, MirrorWorkload
from tenants.models import Namespace
from tests.support.rows import running
from tests.support.rows.waiting_runs import NEEDED, mirror_wait
from workloads.core import queries as core_queries
from workloads.core.observation import Observation
from workloads.models import Run
from workloads.runs import interruption_notices
from workloads.status.observations.queries import observe

TAKEN = "Preempted to accommodate a workload (UID: 5, JobUID: 6) due to reclamation within the cohort"


def condition(type: str, status: str, *, reason: str = "", message: str = "", at: datetime | None = None) -> Any:
    since = (at or timezone.now() - timedelta(seconds=5)).isoformat()
    return {"type": type, "status": status, "reason": reason, "message": message, "since": since}


def asked(namespace: Namespace, one: GpuClass, by: User, name: str = "train", **fields: Any) -> Run:
    """Makes a job that had its units."""
    found = running.workload(namespace, one, name=name, by=by, **{"kind": "job", **fields})
    mirror_wait(found, NEEDED)
    found.runs.update(admitted_at=timezone.now() - timedelta(minutes=9), started_at=timezone.now())
    return found.runs.get()


def queue_says(run: Run, *conditions: Any, preemptions: int = 1, priority_class: str = "") -> None:
    queued = MirrorWorkload.objects.get(job_uid=f"job-{run.workload_id}")
    more = {"preemptions": preemptions, "priority_class": priority_class}
    queued.record = {**queued.record, **more, "conditions": list(conditions)}
    queued.save()


def out(run: Run, *, text: str = TAKEN, reason: str = "InCohortReclamation", waits: str = NEEDED, **more: Any) -> None:
    """Preempts the run some seconds ago; it is in the queue again."""
    at = more.pop("at", None)
    MirrorPod.objects.all().delete()
    queue_says(
        run,
        condition("QuotaReserved", "False", reason="Pending", message=waits),
        condition("Evicted", "True", reason="Preempted", message=text, at=at),
        condition("Preempted", "True", reason=reason, message=text, at=at),
        **more,
    )


def seen(run: Run) -> Observation:
    workload = run.workload
    return observe(workload.namespace, {workload.pk: core_queries.job_name(workload, run)})[workload.pk]


def follow(run: Run) -> bool:
    """Records the preemptions as a worker does that has just read the row."""
    return interruption_notices.record_preemptions(Run.objects.get(pk=run.pk), seen(run))


def holds(run: Run, one: GpuClass, units: int) -> None:
    queue_says(
        run, condition("QuotaReserved", "True"), condition("Admitted", "True"), preemptions=0, priority_class="batch"
    )
    queued = MirrorWorkload.objects.get(job_uid=f"job-{run.workload_id}")
    usage = {"flavors": {one.resource: flavor_name(one)}, "usage": {one.resource: units}}
    queued.record = {**queued.record, **usage}
    queued.save()
