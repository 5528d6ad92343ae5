"""A team with everything that its home page shows."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone

from accounts.models import User
from catalog.classes import queries as class_queries
from catalog.models import GpuClass
from cluster.models import MirrorObject, MirrorPod
from desk.capacity.lending import LentUnits
from desk.home import queries as home_queries
from tenants.models import Namespace
from tests.support.rows import running
from workloads.models import Run


def ready(namespace: Namespace, gpu_class: GpuClass, name: str, by: User, *, minutes_ago: int = 0, **more: Any) -> Run:
    found = running.workload(namespace, gpu_class, name=name, by=by, **more)
    running.make_ready(found)
    MirrorPod.objects.filter(run=f"{name}-1").update(record=_with_units(name, gpu_class, found.units))
    at = timezone.now() - timedelta(minutes=minutes_ago)
    found.runs.update(admitted_at=at, started_at=at)
    return found.runs.get()


def _with_units(name: str, gpu_class: GpuClass, units: int) -> dict[str, Any]:
    record: dict[str, Any] = MirrorPod.objects.get(run=f"{name}-1").record
    return {**record, "requests": {gpu_class.resource: units}}


def cohort(namespace: Namespace, gpu_class: GpuClass, spare: int) -> None:
    """A cohort with `spare` units of its own to lend."""
    quota = {
        class_queries.flavor_name(gpu_class): {
            gpu_class.resource: {"nominal": spare, "borrowing": None, "lending": None}
        }
    }
    MirrorObject.objects.create(
        cluster_id=namespace.cluster_id,
        kind="Cohort",
        name=namespace.cluster.cohort,
        uid="cohort",
        resource_version=1,
        created_at=timezone.now(),
        record={"parent": "", "quota": quota},
    )


def lent(namespace: Namespace) -> LentUnits | None:
    return home_queries.home_state(namespace).holdings[0].lent


def block(name: str) -> None:
    """Blocks the run: its pod is on a node and its image does not exist."""
    pod = MirrorPod.objects.get(run=f"{name}-1")
    since = (timezone.now() - timedelta(minutes=2)).isoformat()
    waiting = {"ready": False, "state": "waiting", "reason": "ImagePullBackOff", "since": since}
    message = 'Back-off pulling image "image": not found'
    container = {**pod.record["containers"][0], **waiting, "message": message}
    scheduled = [one for one in pod.record["conditions"] if one["type"] == "PodScheduled"]
    pod.record = {**pod.record, "containers": [container], "conditions": scheduled, "started_at": None}
    pod.phase = "Pending"
    pod.save()
    Run.objects.filter(workload__name=name).update(started_at=None, ready_at=None)


def stranger(namespace: Namespace, name: str, **columns: Any) -> MirrorPod:
    values = {"node": "a100-2", "phase": "Running", "record": {"requests": {"nvidia.com/gpu": 2, "cpu": 1}}, **columns}
    return MirrorPod.objects.create(
        cluster_id=namespace.cluster_id,
        namespace=namespace.name,
        name=name,
        uid=name,
        resource_version=1,
        created_at=timezone.now(),
        **values,
    )
