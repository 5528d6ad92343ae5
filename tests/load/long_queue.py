"""Teams with any number of waiting workloads, written as rows: launched, in Kueue's queue, without units."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.utils import timezone

from accounts.models import User
from catalog.models import GpuClass
from cluster.manifests.names import run_name
from cluster.models import Cluster, MirrorJob, MirrorWorkload
from portal.core.due import owner_label
from tenants.models import Namespace
from tests.support.rows import make, mirrored
from workloads.launch import spec as launch_spec
from workloads.models import Run, Workload

# One reason for each flavor of the resource, in Kueue's wording.
PENDING = (
    "couldn't assign flavors to pod set main: untolerated taint {gpu-portal/class=a100-mps NoSchedule <nil>} in flavor "
    "a100-mps-41d8c7f5aa, untolerated taint {gpu-portal/class=a100-sliced NoSchedule <nil>} in flavor "
    "a100-sliced-93d1d31c2c, insufficient unused quota for nvidia.com/gpu in flavor a100-0c5a9bf8e2, 1 more needed"
)
# production, interactive and batch, in turns.
PRIORITIES = (1000, 500, 100)
BATCH = 1000


def long_queue(cluster: Cluster, *, teams: int, each: int) -> list[Namespace]:
    """`each` workloads of one class wait in every team, requested at different times with three priorities.

    Statistics are fresh, as with autovacuum.
    """
    mirrored.hardware_seen(cluster)
    gpu_class, person = make.gpu_class(cluster), make.user("Alice")
    found = []
    for number in range(teams):
        team = make.tenant(cluster, slug=f"team-{number}")
        make.member(team, person)
        make.grant(team, gpu_class, units=1)
        namespace = team.namespaces.get()
        wait(namespace, gpu_class, by=person, number=each)
        found.append(namespace)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return found


def wait(namespace: Namespace, gpu_class: GpuClass, *, by: User, number: int) -> None:
    fields = {"tenant": namespace.tenant, "namespace": namespace, "gpu_class": gpu_class, "created_by": by}
    workloads = Workload.objects.bulk_create(
        (
            Workload(
                name=f"waits-{n}",
                kind="job",
                units=1,
                image="image",
                origin=f"n{namespace.pk}-{n}",
                due_at=None,
                **fields,
            )
            for n in range(number)
        ),
        batch_size=BATCH,
    )
    spec = launch_spec.frozen_spec(workloads[0], 1).to_json()
    runs = [Run(workload=one, number=1, requested_by=by, spec={**spec, **_own(one)}) for one in workloads]
    Run.objects.bulk_create(runs, batch_size=BATCH)
    mirrored_rows = list(_mirrored(workloads, timezone.now()))
    MirrorJob.objects.bulk_create((one.job for one in mirrored_rows), batch_size=BATCH)
    MirrorWorkload.objects.bulk_create((one.queued for one in mirrored_rows), batch_size=BATCH)


def _own(one: Workload) -> dict[str, Any]:
    return {"owner": owner_label(one), "workload": one.name}


@dataclass(frozen=True)
class _Mirrored:
    job: MirrorJob
    queued: MirrorWorkload


def _mirrored(workloads: list[Workload], now: datetime) -> Iterator[_Mirrored]:
    for number, one in enumerate(workloads):
        name, job_uid = run_name(one.name, 1), f"job-{one.pk:032}"
        common: dict[str, Any] = {
            "cluster_id": one.namespace.cluster_id,
            "namespace": one.namespace.name,
            "owner": owner_label(one),
            "resource_version": one.pk,
            "created_at": (now - timedelta(seconds=len(workloads) - number)).replace(microsecond=0),
        }
        queue = {"queue": "gpu-portal", "job_uid": job_uid, "record": _queued(PRIORITIES[number % len(PRIORITIES)])}
        job = {"run": name, "record": _job(one.gpu_class.slug)}
        yield _Mirrored(
            MirrorJob(name=name, uid=job_uid, **job, **common),
            MirrorWorkload(name=f"job-{name}-{one.pk:05}", uid=f"workload-{one.pk:027}", **queue, **common),
        )


def _job(slug: str) -> dict[str, Any]:
    counts = dict.fromkeys(("active", "ready", "succeeded", "failed", "terminating"), 0)
    times = {"started_at": None, "completed_at": None}
    sizes = {"suspend": True, "parallelism": 1, "completions": 1}
    return {"labels": {"gpu-portal/class": slug}, "conditions": [], **sizes, **counts, **times}


def _queued(priority: int) -> dict[str, Any]:
    since = "2026-11-21T09:00:00Z"
    reserved = {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": PENDING, "since": since}
    nothing = {"flavors": {}, "usage": {}, "checks": {}, "evictions": {}, "requeue_count": 0, "requeue_at": None}
    queue = {"active": True, "priority": priority, "priority_class": "", "cluster_queue": "", "pods": 1}
    return {"conditions": [reserved], "preemptions": 0, **queue, **nothing}
