"""A ready notebook made only of rows: what the gateway reads, without waiting for a cluster."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from catalog.models import GpuClass
from cluster.manifests.names import run_name
from cluster.models import MirrorEpoch, MirrorJob, MirrorKind, MirrorPod
from portal.core.due import owner_label
from tenants.models import Namespace
from workloads.launch import spec as launch_spec
from workloads.models import Run, Workload

IP = "10.1.2.3"


def known(cluster_id: int, *kinds: str) -> None:
    """Sets the mirror as listed a moment ago."""
    now = timezone.now()
    MirrorEpoch.objects.update_or_create(cluster_id=cluster_id, defaults={"epoch": 1, "heard_at": now, "beat_at": now})
    for kind in kinds or ("Node", "Job", "Pod", "Workload"):
        MirrorKind.objects.update_or_create(
            cluster_id=cluster_id, kind=kind, defaults={"epoch": 1, "listed_at": now, "heard_at": now}
        )


def workload(namespace: Namespace, gpu_class: GpuClass, *, name: str = "one", by: Any, **fields: Any) -> Workload:
    """A notebook of user `by`, shared with the team, with run 1 requested; not due, so that no worker claims it."""
    values = {"kind": "notebook", "units": 1, "image": "image", "origin": f"n{name}", "visibility": "team", **fields}
    found = Workload.objects.create(
        tenant=namespace.tenant,
        namespace=namespace,
        name=name,
        gpu_class=gpu_class,
        created_by=by,
        due_at=None,
        **values,
    )
    spec = launch_spec.frozen_spec(found, 1).to_json()
    Run.objects.create(workload=found, number=1, spec=spec, requested_by=by)
    return found


def make_ready(found: Workload) -> MirrorPod:
    """Makes its pod run and be ready."""
    now = timezone.now()
    Run.objects.filter(workload=found).update(admitted_at=now, started_at=now, ready_at=now)
    namespace = found.namespace
    known(namespace.cluster_id)
    name = run_name(found.name, 1)
    common = {
        "cluster_id": namespace.cluster_id,
        "namespace": namespace.name,
        "owner": owner_label(found),
        "created_at": now,
        "run": name,
        "resource_version": 1,
    }
    job = {
        "labels": {"gpu-portal/class": found.gpu_class.slug},
        "conditions": [],
        "suspend": False,
        "parallelism": 1,
        "completions": 1,
        "active": 1,
        "ready": 1,
        "succeeded": 0,
        "failed": 0,
        "terminating": 0,
        "started_at": now.isoformat(),
        "completed_at": None,
    }
    MirrorJob.objects.create(name=name, uid=f"job-{found.pk}", record=job, **common)
    return MirrorPod.objects.create(
        name=f"{name}-abcde",
        uid=f"pod-{found.pk}",
        node="a100-1",
        phase="Running",
        gpu_class=found.gpu_class.slug,
        record=_pod_record(now.isoformat(), f"job-{found.pk}"),
        **common,
    )


def pod_of(found: Workload, *, uid: str, phase: str = "Running") -> MirrorPod:
    """Another pod of its first run, ready from now on."""
    now = timezone.now()
    name = run_name(found.name, 1)
    return MirrorPod.objects.create(
        cluster_id=found.namespace.cluster_id,
        namespace=found.namespace.name,
        owner=owner_label(found),
        created_at=now,
        run=name,
        resource_version=1,
        name=f"{name}-{uid}",
        uid=uid,
        node="a100-1",
        phase=phase,
        gpu_class=found.gpu_class.slug,
        record=_pod_record(now.isoformat(), f"job-{found.pk}"),
    )


def _pod_record(now: str, job_uid: str) -> dict[str, Any]:
    def true(kind: str) -> dict[str, Any]:
        return {"type": kind, "status": "True", "reason": "", "message": "", "since": now}

    container = {
        "name": "notebook",
        "ready": True,
        "restarts": 0,
        "state": "running",
        "reason": "",
        "message": "",
        "since": now,
        "exit_code": None,
        "ended_at": None,
        "last_reason": "",
        "last_exit_code": None,
    }
    return {
        "requests": {"nvidia.com/gpu": 1},
        "labels": {},
        "conditions": [true("PodScheduled"), true("Ready")],
        "reason": "",
        "message": "",
        "containers": [container],
        "init_containers": [],
        "ip": IP,
        "priority": 0,
        "gates": [],
        "claims": [],
        "job_uid": job_uid,
        "started_at": now,
    }


def container(name: str, state: str, **more: Any) -> dict[str, Any]:
    none = {"reason": "", "message": "", "since": None, "exit_code": None, "ended_at": None}
    return {
        "name": name, "ready": False, "restarts": 0, "state": state, "last_reason": "", "last_exit_code": None, **none,
        **more,
    }  # fmt: skip
