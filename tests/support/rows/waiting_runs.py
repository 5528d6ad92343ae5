"""Queued runs, as rows."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass
from cluster.manifests.names import run_name
from cluster.models import MirrorJob, MirrorPod, MirrorWorkload
from portal.core.due import owner_label
from tenants.models import Namespace
from tests.support.rows import running
from workloads.advice.advice import Advice
from workloads.advice.queries import advice_by_workload
from workloads.core import queries as core_queries
from workloads.core import workload_sql
from workloads.models import Workload
from workloads.status import queries as status_queries

IMAGE = "quay.io/jupyter/minimal-notebook:1"

NODE = "a100-1"

NEEDED = "insufficient unused quota for nvidia.com/gpu in flavor a100-1, 2 more needed"


def runs(namespace: Namespace, one: GpuClass, by: User, name: str, *, units: int = 2, node: str = NODE) -> Workload:
    found = running.workload(namespace, one, name=name, by=by, units=units, image=IMAGE)
    now = timezone.now()
    found.runs.update(admitted_at=now, started_at=now)
    MirrorPod.objects.create(
        cluster_id=namespace.cluster_id, namespace=namespace.name, name=f"{name}-x", uid=f"uid-{name}",
        resource_version=1, owner=owner_label(found), created_at=now, node=node, phase="Running",
        run=run_name(name, 1), gpu_class=one.slug,
        record={
            "requests": {one.resource: units}, "labels": {}, "conditions": [], "reason": "", "message": "",
            "containers": [], "init_containers": [], "ip": "", "priority": 0, "gates": [], "claims": [],
            "job_uid": "", "started_at": None,
        },
    )  # fmt: skip
    return found


def waits(namespace: Namespace, one: GpuClass, by: User, name: str = "waits", text: str = NEEDED, **fields: Any) -> Any:
    """A notebook whose Job Kueue holds in the queue."""
    found = running.workload(namespace, one, name=name, by=by, **{"units": 2, "image": IMAGE, **fields})
    mirror_wait(found, text)
    return found


def mirror_wait(found: Workload, text: str) -> None:
    now = timezone.now()
    common = {
        "cluster_id": found.namespace.cluster_id, "namespace": found.namespace.name, "resource_version": 1,
        "created_at": now,
    }  # fmt: skip
    job = {
        "labels": {"gpu-portal/class": found.gpu_class.slug}, "conditions": [], "suspend": True, "parallelism": 1,
        "completions": 1, "active": 0, "ready": 0, "succeeded": 0, "failed": 0, "terminating": 0, "started_at": None,
        "completed_at": None,
    }  # fmt: skip
    name = run_name(found.name, 1)
    MirrorJob.objects.create(name=name, uid=f"job-{found.pk}", owner=owner_label(found), run=name, record=job, **common)
    reserved = {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": text, "since": None}
    queued = {
        "queue": "gpu-portal", "job_uid": f"job-{found.pk}", "conditions": [reserved], "active": True,
        "priority": 500, "priority_class": "", "cluster_queue": "", "flavors": {}, "usage": {}, "pods": 1,
        "checks": {}, "requeue_count": 0, "requeue_at": None, "evictions": {}, "preemptions": 0,
    }  # fmt: skip
    columns = {key: queued.pop(key) for key in ("queue", "job_uid") if hasattr(MirrorWorkload, key)}
    MirrorWorkload.objects.create(name=f"kueue-{found.pk}", uid=f"wl-{found.pk}", record=queued, **columns, **common)


def told(by: Actor) -> dict[str, Advice]:
    namespace, team = core_queries.team(by, "team-a")
    return advice_by_workload(
        by, namespace, team, status_queries.workload_rows(workload_sql.with_related(Workload.objects.all()))
    )
