"""Helpers for cases that are staged on a real control plane."""

from __future__ import annotations

from cluster.client.kube import Kube
from devcluster.client.kube import Api
from devcluster.client.types import Json
from devcluster.kubelet.scripted import ScriptedKubelet
from portal.core.due import Deadline, TryLater
from tenants.models import Namespace, Tenant
from tenants.provisioning import steps
from tests.support.cluster.worker import Worker
from workloads.core import workload_sql
from workloads.models import Workload
from workloads.status import queries as status_queries

# By workload: phase and reason.
Told = dict[str, tuple[str, str]]

MISSING = 'failed to resolve reference "docker.io/library/python:3": docker.io/library/python:3: not found'

UNPROVIDED = "unprovided"

RUNNING = ("running", "running")


def told() -> Told:
    rows = status_queries.workload_rows(workload_sql.with_related(Workload.objects.all()))
    return {row.workload.name: (str(row.status.phase), row.status.reason) for row in rows}


def never_provided(namespace: str, unique: str) -> Json:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": UNPROVIDED, "namespace": namespace},
        "spec": {**spec, "storageClassName": f"none-{unique}"},
    }  # fmt: skip


def on_nodes(admin: Api, namespace: str) -> list[str]:
    return [
        pod["metadata"]["labels"]["gpu-portal/workload"]
        for pod in admin.list("v1/pods", namespace=namespace)
        if pod["spec"].get("nodeName")
    ]


def of_team(tenant: Tenant) -> Told:
    found = status_queries.workload_rows(workload_sql.with_related(Workload.objects.filter(tenant=tenant)))
    return {row.workload.name: (str(row.status.phase), row.status.reason) for row in found}


def is_open(namespace: Namespace, kube: Kube) -> bool:
    namespace.refresh_from_db()
    try:
        steps.work_on_namespace(namespace, Deadline(), kube=kube)
    except TryLater:
        return False
    return kube.get("ClusterQueue", name=namespace.name).body["spec"].get("stopPolicy", "None") == "None"


def play(kubelet: ScriptedKubelet, worker: Worker, namespace: str, name: str) -> None:
    """Sets the workload's pod to Running as soon as the pod is on a node."""
    worker(lambda: name in on_nodes(kubelet.api, namespace))
    kubelet.running(kubelet.bound(namespace, labels=f"gpu-portal/workload={name}"))
