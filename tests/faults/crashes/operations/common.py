"""People, a team and a class of one case; calls of the API; and the mirror, as a watcher would write it."""

from __future__ import annotations

import json
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from accounts.models import Delivery, Role, User
from catalog.models import GpuClass, Image
from cluster.models import Cluster, MirrorEpoch, MirrorKind
from tenants.models import Membership, Namespace, Tenant
from tests.faults.crashes.types import Ground, Place
from tests.support.cluster.worker import provision
from tests.support.http.callers import bearer
from tests.support.rows import make, mirrored
from tests.support.waiting import wait_until

TEAM = "team-a"
UNITS = 2
PATIENCE_S = 3
SEEN = {
    "Namespace": "v1/namespaces", "Pod": "v1/pods", "Job": "batch/v1/jobs",
    "Workload": "kueue.x-k8s.io/v1beta2/workloads", "LocalQueue": "kueue.x-k8s.io/v1beta2/localqueues",
    "ClusterQueue": "kueue.x-k8s.io/v1beta2/clusterqueues", "PersistentVolumeClaim": "v1/persistentvolumeclaims",
}  # fmt: skip
CLUSTER_WIDE = {"Namespace", "ClusterQueue"}


@dataclass(frozen=True)
class Team:
    cluster: Cluster
    tenant: Tenant
    namespace: Namespace
    gpu_class: GpuClass
    alice: User
    dana: User
    olga: User

    def tokens(self) -> dict[str, Any]:
        return {name: bearer(getattr(self, name)) for name in ("alice", "dana", "olga")}


def team(place: Place) -> Team:
    cluster = the_cluster(place)
    alice, olga = make.user("Alice"), make.user("Olga", roles=[Role.OPERATOR, Role.ADMIN])
    tenant = make.tenant(cluster, slug=TEAM, namespace=place.name)
    make.member(tenant, alice, Membership.Role.OWNER)
    make.member(tenant, make.user("Bob"))
    gpu_class = make.gpu_class(cluster, slug=f"a100-{place.name}", promise_limit=8)
    Image.objects.create(name="minimal", reference="quay.io/jupyter/minimal-notebook:2026-09-01", kind="notebook")
    Image.objects.create(name="python", reference="docker.io/library/python:3.14-slim", kind="job")
    dana = make.approver("Dana")
    return Team(cluster, tenant, tenant.namespaces.get(), gpu_class, alice, dana, olga)


def the_cluster(place: Place) -> Cluster:
    return Cluster.objects.create(
        name="main", notebooks_domain="notebooks.localhost", cohort=f"gpu-portal-{place.name}"
    )


def provisioned(ground: Ground, place: Place) -> Team:
    """With two units in force, and an open queue."""
    found = team(place)
    make.grant(found.tenant, found.gpu_class, units=UNITS)
    provision(found.namespace, ground.kube)
    return found


def api(place: Place, who: str, address: str, body: Any = None, *, done: Collection[str] = ()) -> None:
    """A POST with an Idempotency-Key, which is repeated after a lost answer. `done`: codes of the refusal of a call
    without such a key that was carried out before.
    """
    from django.test import Client

    headers = {**place.known["tokens"][who], "Idempotency-Key": "the-only-call"}
    answer = Client(headers=headers).post(f"/api/v1/{address}", json.dumps(body or {}), content_type="application/json")
    assert answer.status_code < 300 or answer.json().get("code") in done, answer.content


def look(ground: Ground, place: Place, **more: list[Any]) -> None:
    """The mirror is current."""
    cluster = Cluster.objects.get()
    kinds: dict[str, list[Any]] = {}
    for kind, path in SEEN.items():
        if kind in CLUSTER_WIDE:
            kinds[kind] = [one for one in ground.admin.list(path) if place.name in one["metadata"]["name"]]
        else:
            kinds[kind] = ground.admin.list(path, namespace=place.name)
    nodes = {pod["spec"]["nodeName"] for pod in kinds["Pod"] if pod["spec"].get("nodeName")}
    kinds["Node"] = [node for name in sorted(nodes) if (node := ground.admin.find("v1/nodes", name)) is not None]
    # Owners of what changed are woken, as by the watcher: a run looks at its pods for no other reason for hours.
    mirrored.seen(cluster, **{**kinds, **more}).tell()
    now = timezone.now()
    MirrorKind.objects.update(heard_at=now)
    MirrorEpoch.objects.update(heard_at=now, beat_at=now)


def quiet(ground: Ground, place: Place) -> None:
    """Waits until the cluster has done its part: every Job runs, or has ended. Not for long, because a Job may wait for
    what the workers do next. Then the mirror is read.
    """
    with suppress(AssertionError):
        wait_until(lambda: _is_quiet(ground, place), within_s=PATIENCE_S, every_s=0.05)
    look(ground, place)


def _is_quiet(ground: Ground, place: Place) -> bool:
    jobs = {
        job["metadata"]["name"]: job
        for job in ground.admin.list("batch/v1/jobs", namespace=place.name)
        if not any(one["type"] in ("Complete", "Failed") for one in job["status"].get("conditions", []))
    }
    if any("deletionTimestamp" in job["metadata"] for job in jobs.values()):
        return False
    pods = ground.admin.list("v1/pods", namespace=place.name)
    if any("deletionTimestamp" in pod["metadata"] for pod in pods):
        return False
    workloads = ground.admin.list("kueue.x-k8s.io/v1beta2/workloads", namespace=place.name)
    inactive = {
        owner["name"]
        for one in workloads
        if one["spec"].get("active") is False
        for owner in one["metadata"].get("ownerReferences", [])
    }
    ready = [name for name, job in jobs.items() if job["status"].get("ready") or name in inactive]
    claims = ground.admin.list("v1/persistentvolumeclaims", namespace=place.name)
    return len(ready) == len(jobs) and not any("deletionTimestamp" in claim["metadata"] for claim in claims)


def mails_are_sent() -> bool:
    return not Delivery.objects.filter(sent_at=None, due_at__isnull=False).exists()
