"""The embedded cluster behaves as its reference says: quota queues, deleted pods end first, logs can be read."""

from pathlib import Path
from typing import Any

import pytest

from devcluster.client.kube import Api
from devcluster.client.types import Json
from tests.support.waiting import wait_until

KUEUE = "kueue.x-k8s.io/v1beta2"


@pytest.fixture
def queue(admin: Api, namespace: str, unique: str) -> Any:
    """A LocalQueue `gpu-portal` with 2 whole A100 cards and one DRA device; returns the name of the ClusterQueue."""
    labels = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.sharing-strategy": "none"}
    cards, devices = f"cards-{unique}", f"devices-{unique}"
    admin.create(
        {
            "apiVersion": KUEUE,
            "kind": "ResourceFlavor",
            "metadata": {"name": cards},
            "spec": {"nodeLabels": labels, "topologyName": "gpu-portal"},
        }
    )
    admin.create({"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": devices}, "spec": {}})
    groups = [_group("nvidia.com/gpu", cards, 2), _group("dra.portal/h100", devices, 1)]
    spec = {"namespaceSelector": {}, "resourceGroups": groups}
    admin.create({"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": namespace}, "spec": spec})
    metadata = {"name": "gpu-portal", "namespace": namespace}
    admin.create({"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": namespace}})
    yield namespace
    for job in admin.list("batch/v1/jobs", namespace=namespace):
        admin.delete("batch/v1/jobs", job["metadata"]["name"], namespace=namespace)
    admin.delete(f"{KUEUE}/localqueues", "gpu-portal", namespace=namespace)
    admin.delete(f"{KUEUE}/clusterqueues", namespace)
    for flavor in (cards, devices):
        admin.delete(f"{KUEUE}/resourceflavors", flavor)


def _group(resource: str, flavor: str, units: int) -> Json:
    resources = [{"name": resource, "nominalQuota": str(units)}]
    return {"coveredResources": [resource], "flavors": [{"name": flavor, "resources": resources}]}


def job(name: str, namespace: str, *, cards: int = 0, **pod: Any) -> Json:
    limits = {"nvidia.com/gpu": str(cards)} if cards else {}
    container = {"name": "main", "image": "example/train", "resources": {"limits": limits}}
    annotations = {"kueue.x-k8s.io/podset-unconstrained-topology": "true"} if cards else {}
    spec = {"restartPolicy": "Never", "tolerations": [{"operator": "Exists"}], "containers": [container], **pod}
    rules = [{"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [0]}}]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace, "labels": {"kueue.x-k8s.io/queue-name": "gpu-portal"}},
        "spec": {
            "podReplacementPolicy": "Failed",
            "podFailurePolicy": {"rules": rules},
            "template": {"metadata": {"annotations": annotations}, "spec": spec},
        },
    }


def running(admin: Api, namespace: str, name: str) -> Json | None:
    pods = admin.list("v1/pods", namespace=namespace, labels=f"job-name={name}")
    return next((pod for pod in pods if pod["status"].get("phase") == "Running"), None)


def test_a_job_over_quota_waits_with_its_place_and_starts_when_there_is_room(admin: Api, queue: str) -> None:
    admin.create(job("first", queue, cards=2))
    wait_until(lambda: running(admin, queue, "first"))
    admin.create(job("second", queue, cards=1))
    path = f"/apis/visibility.kueue.x-k8s.io/v1beta2/clusterqueues/{queue}/pendingworkloads"
    waiting = wait_until(lambda: admin.request("GET", path)["items"])
    assert isinstance(waiting, list)
    assert [(item["positionInClusterQueue"], item["localQueueName"]) for item in waiting] == [(0, "gpu-portal")]
    assert admin.get("batch/v1/jobs", "second", namespace=queue)["spec"]["suspend"] is True

    admin.delete("batch/v1/jobs", "first", namespace=queue)
    wait_until(lambda: running(admin, queue, "second"))


def test_a_pod_deleted_by_hand_ends_as_failed_before_it_goes(admin: Api, queue: str) -> None:
    admin.create(job("doomed", queue, cards=1))
    pod = wait_until(lambda: running(admin, queue, "doomed"))
    assert isinstance(pod, dict)
    admin.delete("v1/pods", pod["metadata"]["name"], namespace=queue)
    wait_until(lambda: admin.find("v1/pods", pod["metadata"]["name"], namespace=queue) is None)
    ended = wait_until(lambda: _condition(admin.get("batch/v1/jobs", "doomed", namespace=queue), "Failed"))
    assert isinstance(ended, dict)
    assert "exit code 137" in ended["message"]


def test_a_pod_completes_only_when_it_is_told_to(admin: Api, queue: str) -> None:
    admin.create(job("patient", queue, cards=1))
    pod = wait_until(lambda: running(admin, queue, "patient"))
    assert isinstance(pod, dict)
    body = {"metadata": {"labels": {"devcluster/complete": "true"}}}
    admin.patch("v1/pods", pod["metadata"]["name"], body, namespace=queue)
    wait_until(lambda: _condition(admin.get("batch/v1/jobs", "patient", namespace=queue), "Complete"))


def test_a_job_with_a_device_claim_is_queued_under_the_mapped_resource(admin: Api, queue: str) -> None:
    device = {"deviceClassName": "gpu.nvidia.com", "allocationMode": "ExactCount", "count": 1}
    requests = {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": device}]}}}
    metadata = {"name": "one", "namespace": queue}
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": metadata,
        "spec": requests,
    }
    admin.create(template)
    container = {"name": "main", "image": "example/train", "resources": {"claims": [{"name": "gpu"}]}}
    claims = [{"name": "gpu", "resourceClaimTemplateName": "one"}]
    admin.create(job("claims", queue, containers=[container], resourceClaims=claims))
    wait_until(lambda: running(admin, queue, "claims"))

    def used() -> dict[str, str]:
        flavors = admin.get(f"{KUEUE}/clusterqueues", queue)["status"]["flavorsUsage"]
        return {resource["name"]: resource["total"] for flavor in flavors for resource in flavor["resources"]}

    wait_until(lambda: used() == {"nvidia.com/gpu": "0", "dra.portal/h100": "1"})


def test_logs_of_a_simulated_pod_can_be_read_through_the_api_server(admin: Api, queue: str, tmp_path: Path) -> None:
    admin.create(job("talks", queue, cards=1))
    pod = wait_until(lambda: running(admin, queue, "talks"))
    assert isinstance(pod, dict)
    file = tmp_path / "main.log"
    file.write_text("2026-11-21T05:00:00.000000000Z stdout F epoch 1 of 3\n")
    logs = [{"containers": ["main"], "logsFile": str(file), "follow": True}]
    metadata = {"name": pod["metadata"]["name"], "namespace": queue}
    admin.create({"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Logs", "metadata": metadata, "spec": {"logs": logs}})
    path = f"/api/v1/namespaces/{queue}/pods/{pod['metadata']['name']}/log"
    wait_until(lambda: admin.raw("GET", path) == (200, b"epoch 1 of 3\n"))


def _condition(obj: Json, kind: str) -> Json | None:
    conditions = obj.get("status", {}).get("conditions", [])
    return next((c for c in conditions if c["type"] == kind and c["status"] == "True"), None)
