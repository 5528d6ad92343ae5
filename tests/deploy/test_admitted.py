"""Through the fences and Kueue: what the worker may create really becomes a pod on a node.

Kueue writes the flavor's labels, tolerations and topology gate into the Job, the Job controller makes the pod, Kueue
opens the gate: each of these writes passes the second fence, or nothing would ever start.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from devcluster.client.kube import Api
from tests.deploy.fences.pods import template
from tests.support.cluster.identities import DEADLINE_S

Json = dict[str, Any]
QUEUES = "kueue.x-k8s.io/v1beta2"
OURS = {"app.kubernetes.io/managed-by": "gpu-portal"}
GPU = "amd.com/gpu"  # one simulated node has it, behind a taint of that name


def queue_objects(name: str) -> list[Json]:
    flavor = {
        "nodeLabels": {"kubernetes.io/hostname": "mi300x"},
        "nodeTaints": [{"key": "gpu-portal/class", "value": "mi300x", "effect": "NoSchedule"}],
        "tolerations": [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}],
        "topologyName": "gpu-portal",
    }
    quota = {"name": GPU, "nominalQuota": "1", "borrowingLimit": "0"}
    queue = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}},
        "cohortName": f"gpu-portal-{name}",
        "resourceGroups": [{"coveredResources": [GPU], "flavors": [{"name": name, "resources": [quota]}]}],
    }
    return [
        {"kind": "ResourceFlavor", "metadata": {"name": name}, "spec": flavor},
        {"kind": "Cohort", "metadata": {"name": f"gpu-portal-{name}"}},
        {"kind": "ClusterQueue", "metadata": {"name": name}, "spec": queue},
        {"kind": "LocalQueue", "metadata": {"name": "gpu-portal", "namespace": name}, "spec": {"clusterQueue": name}},
    ]


def job(name: str, gpu_class: str = "mi300x") -> Json:
    inner = template()
    inner["metadata"]["labels"] |= {"gpu-portal/class": gpu_class}
    inner["spec"]["containers"][0] |= {"env": [], "resources": {"requests": {GPU: "1"}, "limits": {GPU: "1"}}}
    inner["spec"] |= {
        "nodeSelector": {},
        "tolerations": [{"key": "gpu-portal/class", "value": gpu_class, "effect": "NoSchedule"}],
    }
    labels = OURS | {"kueue.x-k8s.io/queue-name": "gpu-portal", "gpu-portal/class": gpu_class}
    labels |= {"kueue.x-k8s.io/priority-class": "batch"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"of-{gpu_class}", "namespace": name, "labels": labels},
        "spec": {"template": inner, "backoffLimit": 0, "podReplacementPolicy": "Failed"},
    }


@pytest.fixture(scope="module")
def queues(worker: Api, admin: Api, ours: str) -> Iterator[str]:
    objects = queue_objects(ours)
    for body in objects:
        metadata = body["metadata"] | {"labels": OURS}
        worker.create({"apiVersion": QUEUES, **body, "metadata": metadata})
    yield ours
    for gpu_class in ("mi300x", "another"):
        admin.delete("batch/v1/jobs", f"of-{gpu_class}", namespace=ours, grace_s=0)
    for body in reversed(objects):
        plural = body["kind"].lower() + "s"
        admin.delete(f"{QUEUES}/{plural}", body["metadata"]["name"], namespace=body["metadata"].get("namespace", ""))


def test_a_job_of_the_worker_is_admitted_and_its_pod_gets_a_node(worker: Api, admin: Api, queues: str) -> None:
    worker.create(job(queues))

    pod = _first_bound_pod(admin, queues)

    assert pod["spec"]["nodeName"] == "mi300x"
    assert pod["metadata"]["labels"]["gpu-portal/class"] == "mi300x"
    assert {t["key"] for t in pod["spec"]["tolerations"]} >= {"gpu-portal/class", GPU}
    assert pod["spec"]["priorityClassName"] == "gpu-portal"


def test_a_job_gets_no_device_of_another_class(worker: Api, admin: Api, queues: str) -> None:
    """The fence lets a pod tolerate only the taint of its own class, and no other flavor's taint is on its flavors: so
    Kueue never gives it quota, and without quota a Job has no pods. A resource that no class has is not in the queue.
    """
    worker.create(job(queues, "another"))

    said = _refusal_of_kueue(admin, queues, "of-another")

    assert "untolerated taint {gpu-portal/class mi300x NoSchedule" in said
    assert admin.get("batch/v1/jobs", "of-another", namespace=queues)["spec"]["suspend"] is True


def _refusal_of_kueue(admin: Api, namespace: str, job_name: str) -> str:
    for _kind, workload in admin.watch(f"{QUEUES}/workloads", namespace=namespace, timeout_s=DEADLINE_S):
        owners = [one["name"] for one in workload.get("metadata", {}).get("ownerReferences", [])]
        for one in workload.get("status", {}).get("conditions", []) if job_name in owners else []:
            if (one["type"], one["status"]) == ("QuotaReserved", "False"):
                return str(one["message"])
    raise AssertionError(f"Kueue said nothing within {DEADLINE_S:.0f} s")


def _first_bound_pod(admin: Api, namespace: str) -> Json:
    for _kind, pod in admin.watch("v1/pods", namespace=namespace, timeout_s=DEADLINE_S):
        if pod.get("spec", {}).get("nodeName"):
            return pod
    events = [f"{e['reason']}: {e['message']}" for e in admin.list("v1/events", namespace=namespace)]
    raise AssertionError(f"no pod on a node after {DEADLINE_S:.0f} s; events: {events}")
