"""50,000 runs at rest: their rows, and their Jobs and pods in the real API server.

One Job and one pod are created through the API server; their stored values are written to etcd for all runs, as
`many_pods` does. The Jobs name another controller (`managedBy`), and no queue: the Job controller and Kueue would
handle 50,000 new ones for minutes. So there are no Workloads of Kueue either, and no intervals of allocation.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devcluster.client.kube import Api, ApiError
from tests.perf.servers.watcher import until
from tests.perf.support.cluster.many_pods import Etcd

RUNS, TEAMS = 50_000, 100
EACH = RUNS // TEAMS
# Names, keys and uids of one length: they are replaced in the stored bytes.
FIRST_KEY = 100_000
AT_ONCE = 100
MADE_WITHIN_S = 60.0
Raw = dict[str, Any]


@dataclass(frozen=True)
class _Names:
    """Of one run, all of the same length as those of another."""

    number: int

    @property
    def namespace(self) -> str:
        return f"bench-quiet-{self.number // EACH:03}"

    @property
    def workload(self) -> str:
        return f"run{self.number:05}"

    @property
    def job(self) -> str:
        return f"{self.workload}-1"

    @property
    def owner(self) -> str:
        return f"workloads.workload.{FIRST_KEY + self.number}"

    def uid(self, of_first: str) -> str:
        return of_first[:-12] + f"{self.number:012}" if self.number else of_first


@contextlib.contextmanager
def runs_in_cluster(admin: Api, state: Path) -> Iterator[str]:
    """Yields the uid of the first Job, from which `_Names.uid` makes the others."""
    etcd = Etcd(state)
    namespaces = [_Names(team * EACH).namespace for team in range(TEAMS)]
    try:
        for name in namespaces:
            admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        job, pod = _job(admin), _pod(admin)
        # Afterwards: the fence refuses Jobs without a queue in namespaces of teams.
        ours = {"metadata": {"labels": {"app.kubernetes.io/managed-by": "gpu-portal"}}}
        for name in namespaces:
            admin.patch("v1/namespaces", name, ours)
        _copy(etcd, "jobs", job)
        _copy(etcd, "pods", pod)
        yield job
    finally:
        for name, kind in itertools.product(namespaces, ("jobs", "pods")):
            etcd.delete(f"/registry/{kind}/{name}/")
        for name in namespaces:
            with contextlib.suppress(ApiError):
                admin.delete("v1/namespaces", name)


def _copy(etcd: Etcd, kind: str, uid: str) -> None:
    def key(one: _Names) -> str:
        return f"/registry/{kind}/{one.namespace}/{one.job}"

    first = _Names(0)
    stored = etcd.read(key(first))
    for begin in range(1, RUNS, AT_ONCE):
        values = {}
        for number in range(begin, min(begin + AT_ONCE, RUNS)):
            one, text = _Names(number), stored
            for old, new in (
                (first.namespace, one.namespace), (first.workload, one.workload), (first.owner, one.owner),
                (uid, one.uid(uid)),
            ):  # fmt: skip
                text = text.replace(old.encode(), new.encode())
            values[key(one)] = text
        etcd.write(values)


def _metadata() -> Raw:
    first = _Names(0)
    labels = {
        "app.kubernetes.io/managed-by": "gpu-portal",
        "gpu-portal/owner": first.owner,
        "gpu-portal/run": first.job,
        "gpu-portal/class": "a100",
    }
    return {"name": first.job, "namespace": first.namespace, "labels": labels}


def _spec() -> Raw:
    return {
        "restartPolicy": "Never",
        "schedulingGates": [{"name": "example.org/bench"}],
        "automountServiceAccountToken": False,
        "containers": [{"name": "main", "image": "registry.example.org/team/training:1", "command": ["train"]}],
    }


def _job(admin: Api) -> str:
    spec = {"managedBy": "example.org/bench", "template": {"spec": _spec()}}
    job = _made(admin, {"apiVersion": "batch/v1", "kind": "Job", "metadata": _metadata(), "spec": spec})
    status = {"active": 1, "ready": 1, "startTime": job["metadata"]["creationTimestamp"]}
    admin.patch_status("batch/v1/jobs", _Names(0).job, status, namespace=_Names(0).namespace)
    return str(job["metadata"]["uid"])


def _pod(admin: Api) -> str:
    pod = _made(admin, {"apiVersion": "v1", "kind": "Pod", "metadata": _metadata(), "spec": _spec()})
    since = pod["metadata"]["creationTimestamp"]
    container = {"name": "main", "image": "x", "imageID": "", "ready": True, "restartCount": 0, "started": True}
    status = {
        "phase": "Running",
        "startTime": since,
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": since}],
        "containerStatuses": [container | {"state": {"running": {"startedAt": since}}}],
    }
    admin.patch_status("v1/pods", _Names(0).job, status, namespace=_Names(0).namespace)
    return str(pod["metadata"]["uid"])


def _made(admin: Api, manifest: Raw) -> Raw:
    deadline, pause = time.monotonic() + MADE_WITHIN_S, threading.Event()
    while True:
        try:
            return admin.create(manifest)
        except ApiError as error:
            # The namespace's service account is created a moment later.
            if error.status != 403 or time.monotonic() > deadline:
                raise
        pause.wait(0.1)


# ---- rows --------------------------------------------------------------------------------------------------------


def make_rows(job_uid: str) -> Any:
    """Teams with members, and runs that are ready: half of them notebooks. Returns the cluster. Namespaces are not due:
    what they cost depends on the number of teams.
    """
    from cluster.models import AppliedObject, Cluster
    from tenants.models import Membership, Namespace, Tenant
    from tests.support.rows import make
    from workloads.launch.spec import frozen_spec
    from workloads.models import Run, Workload

    cluster = Cluster.objects.create(name="main", notebooks_domain="notebooks.localhost")
    person, gpu_class = make.user("Alice"), make.gpu_class(cluster)
    firsts = [_Names(team * EACH).namespace for team in range(TEAMS)]
    teams = Tenant.objects.bulk_create(Tenant(slug=slug, name=slug) for slug in firsts)
    namespaces = Namespace.objects.bulk_create(
        Namespace(tenant=team, cluster=cluster, name=team.slug, due_at=None) for team in teams
    )
    Membership.objects.bulk_create(Membership(tenant=team, user=person, role="member") for team in teams)
    all_names = [_Names(number) for number in range(RUNS)]
    workloads = Workload.objects.bulk_create([
        Workload(
            pk=FIRST_KEY + one.number, tenant=teams[one.number // EACH], namespace=namespaces[one.number // EACH],
            name=one.workload, kind="notebook" if one.number % 2 else "job", origin=f"n{one.number}", units=1,
            gpu_class=gpu_class, image="image", created_by=person, due_at=None, observed_generation=1,
        )
        for one in all_names
    ], batch_size=1000)  # fmt: skip
    specs = {kind: frozen_spec(workloads[kind == "notebook"], 1).to_json() for kind in ("job", "notebook")}
    from django.utils import timezone

    now = timezone.now()
    Run.objects.bulk_create([
        Run(
            workload=found, number=1, requested_by=person, requested_at=now, admitted_at=now,
            started_at=now, ready_at=now, token_key="bench" if found.kind == "notebook" else "",
            spec=specs[found.kind] | {
                "workload": one.workload, "namespace": one.namespace, "owner": one.owner, "identity": "",
            },
        )
        for found, one in zip(workloads, all_names, strict=True)
    ], batch_size=1000)  # fmt: skip
    AppliedObject.objects.bulk_create([
        AppliedObject(
            cluster=cluster, owner=one.owner, kind=kind, namespace=one.namespace, name=one.job, result="applied",
            uid=one.uid(job_uid) if kind == "Job" else f"secret-{one.number}",
        )
        for one in all_names for kind in (("Job", "Secret") if one.number % 2 else ("Job",))
    ], batch_size=1000)  # fmt: skip
    return cluster


def until_synced(cluster_id: int) -> None:
    """A watcher has mirrored all runs, and their rows know of it."""
    from cluster.models import MirrorJob, MirrorNews, MirrorPod
    from cluster.reads import queries as mirror

    until(lambda: mirror.as_of(cluster_id).is_current, "The first list")
    for model in (MirrorJob, MirrorPod):
        ours = model._base_manager.filter(cluster_id=cluster_id).exclude(owner="")
        until(lambda ours=ours: ours.count() >= RUNS, f"{RUNS:,} runs in the mirror")  # type: ignore[misc]
    until(lambda: not MirrorNews.objects.exists(), "The delivery of news")
