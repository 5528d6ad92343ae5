"""What Kueue does with the nodes of a flavor whose Topology has racks: the reason for what a class may name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from catalog.models import GpuClass
from catalog.pool.reconcile import flavor_spec
from cluster.manifests import pool
from cluster.models import Cluster
from devcluster.client.kube import Api
from devcluster.controlplane import hardware
from tests.support.cluster.removal import remove_namespace
from tests.support.rows import make
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db
KUEUE = "kueue.x-k8s.io/v1beta2"
GPU, OWN, RACK = "nvidia.com/gpu", "test.example/own-node", "example.org/rack"
PREFIX = "kueue.x-k8s.io/podset"


@pytest.fixture
def racked(cluster: Cluster, unique: str) -> GpuClass:
    fields = {"node_labels": {OWN: unique}, "tolerations": [], "topology": f"gpu-portal-{unique}"}
    return make.gpu_class(cluster, slug=f"racked-{unique}", **fields)


@pytest.fixture
def namespace(admin: Api, unique: str) -> Iterator[str]:
    name = f"racked-{unique}"
    admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    wait_until(lambda: admin.find("v1/serviceaccounts", "default", namespace=name))
    yield name
    remove_namespace(admin, admin.get("v1/namespaces", name))


@pytest.fixture
def queue(admin: Api, racked: GpuClass, namespace: str, unique: str) -> Iterator[str]:
    """Two racks with 6 GPUs each, on two nodes, and a node with 6 GPUs that is in no rack; quota for all of them."""
    places = [("a-1", 4, "a"), ("a-2", 2, "a"), ("b-1", 4, "b"), ("b-2", 2, "b"), ("none", 6, "")]
    nodes = [f"racked-{name}-{unique}" for name, _, _ in places]
    # Pods of other tests would use GPUs of a node without a taint, and Kueue counts them.
    taint = {"key": OWN, "value": unique, "effect": "NoSchedule"}
    for name, (_, units, rack) in zip(nodes, places, strict=True):
        labels = {OWN: unique, **({RACK: rack} if rack else {})}
        hardware.add(admin, hardware.node(name, devices={GPU: units}, labels=labels, taints=[taint]))
    levels = [{"nodeLabel": RACK}, {"nodeLabel": "kubernetes.io/hostname"}]
    spec = {"levels": levels}
    admin.create({"apiVersion": KUEUE, "kind": "Topology", "metadata": {"name": racked.topology}, "spec": spec})
    flavor = pool.resource_flavor(flavor_spec(racked, owner="test"))
    admin.create(flavor)
    cells = [{"name": flavor["metadata"]["name"], "resources": [{"name": GPU, "nominalQuota": "18"}]}]
    groups = [{"coveredResources": [GPU], "flavors": cells}]
    spec = {"namespaceSelector": {}, "resourceGroups": groups}
    admin.create({"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": namespace}, "spec": spec})
    metadata = {"name": "gpu-portal", "namespace": namespace}
    admin.create({"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": namespace}})
    yield namespace
    for job in admin.list("batch/v1/jobs", namespace=namespace):
        admin.delete("batch/v1/jobs", job["metadata"]["name"], namespace=namespace)
    admin.delete(f"{KUEUE}/localqueues", "gpu-portal", namespace=namespace)
    admin.delete(f"{KUEUE}/clusterqueues", namespace)
    admin.delete(f"{KUEUE}/resourceflavors", flavor["metadata"]["name"])
    admin.delete(f"{KUEUE}/topologies", racked.topology)
    for name in nodes:
        admin.delete("v1/nodes", name)


def gang(namespace: str, count: int, **annotations: str) -> dict[str, Any]:
    """A Job with so many pods of one GPU each."""
    container = {"name": "main", "image": "example/train", "resources": {"limits": {GPU: "1"}}}
    spec = {"restartPolicy": "Never", "tolerations": [{"operator": "Exists"}], "containers": [container]}
    told = {f"{PREFIX}-{name}-topology": value for name, value in annotations.items()}
    labels = {"kueue.x-k8s.io/queue-name": "gpu-portal"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "gang", "namespace": namespace, "labels": labels},
        "spec": {
            "parallelism": count,
            "completions": count,
            "podReplacementPolicy": "Failed",
            "template": {"metadata": {"annotations": told}, "spec": spec},
        },
    }


def reserved(admin: Api, namespace: str) -> dict[str, Any] | None:
    found = [one.get("status", {}) for one in admin.list(f"{KUEUE}/workloads", namespace=namespace)]
    conditions = [one for status in found for one in status.get("conditions", []) if one["type"] == "QuotaReserved"]
    return conditions[0] if conditions else None


def nodes_of(admin: Api, namespace: str, count: int) -> list[str] | None:
    pods = admin.list("v1/pods", namespace=namespace)
    places = [pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")]
    return places if len(places) == count else None


def test_a_node_without_the_label_of_a_level_is_ignored(admin: Api, queue: str) -> None:
    """18 GPUs are free, and the quota is 18."""
    admin.create(gang(queue, 14, unconstrained="true"))
    told = wait_until(lambda: reserved(admin, queue))
    assert isinstance(told, dict)
    assert told["status"] == "False"
    assert "allows to fit only 12 out of 14 pod(s)" in told["message"]


def test_pods_that_may_run_anywhere_are_admitted_across_racks(admin: Api, queue: str) -> None:
    """As every run of the portal asks today, whatever the levels of its class."""
    admin.create(gang(queue, 8, unconstrained="true"))
    places = wait_until(lambda: nodes_of(admin, queue, 8), within_s=60)
    assert isinstance(places, list)
    assert {name.split("-")[1] for name in places} == {"a", "b"}


def test_eight_pods_that_require_one_rack_wait_and_six_are_said_to_fit(admin: Api, queue: str) -> None:
    admin.create(gang(queue, 8, required=RACK))
    told = wait_until(lambda: reserved(admin, queue))
    assert isinstance(told, dict)
    assert told["status"] == "False"
    assert "allows to fit only 6 out of 8 pod(s)" in told["message"]


def test_eight_pods_that_prefer_one_rack_are_admitted_across_racks(admin: Api, queue: str) -> None:
    admin.create(gang(queue, 8, preferred=RACK))
    places = wait_until(lambda: nodes_of(admin, queue, 8), within_s=60)
    assert isinstance(places, list)
    assert {name.split("-")[1] for name in places} == {"a", "b"}
