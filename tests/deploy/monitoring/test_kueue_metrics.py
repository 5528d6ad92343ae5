"""The real Kueue has the metrics and labels of `scene.kueue`, with which the dashboards are tried."""

from __future__ import annotations

import json
import ssl
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from devcluster.client.kube import Api, path_of
from tests.deploy.monitoring import scene
from tests.support.waiting import wait_until

Json = dict[str, Any]
KUEUE = "kueue.x-k8s.io/v1beta2"


def objects(unique: str) -> list[Json]:
    """A queue with a quota and an admitted workload, and an account that may read metrics."""
    resources = {"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}}
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none", "resources": resources}]}
    here = {"name": unique, "namespace": "default"}
    flavors = [{"name": unique, "resources": [{"name": "nvidia.com/gpu", "nominalQuota": "4"}]}]
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": unique}
    account = {"kind": "ServiceAccount", "name": unique, "namespace": "default"}
    return [
        {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": unique}, "spec": {}},
        {
            "apiVersion": KUEUE,
            "kind": "ClusterQueue",
            "metadata": {"name": unique},
            "spec": {
                "namespaceSelector": {},
                "resourceGroups": [{"coveredResources": ["nvidia.com/gpu"], "flavors": flavors}],
            },
        },
        {"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": here, "spec": {"clusterQueue": unique}},
        {
            "apiVersion": KUEUE,
            "kind": "Workload",
            "metadata": here,
            "spec": {"queueName": unique, "podSets": [{"name": "main", "count": 1, "template": {"spec": pod}}]},
        },
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": here},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": unique},
            "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": unique},
            "roleRef": role,
            "subjects": [account],
        },
    ]


@pytest.fixture
def token(admin: Api, unique: str) -> Iterator[str]:
    made = objects(unique)
    for one in made:
        admin.apply(one)
    path = path_of("v1/serviceaccounts", unique, namespace="default", subresource="token")
    yield admin.request("POST", path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"})["status"][
        "token"
    ]
    for one in reversed(made):
        admin.request("DELETE", admin._path_for(one))


def test_the_real_kueue_has_these_metrics_and_labels(services: Json, token: str, unique: str) -> None:
    port = json.loads((Path(services["state_dir"]) / "ports.json").read_text())["kueue-metrics"]
    unverified = ssl._create_unverified_context()  # a certificate of its own
    request = urllib.request.Request(f"https://127.0.0.1:{port}/metrics", headers={"Authorization": f"Bearer {token}"})

    def read() -> list[Sample]:
        with urllib.request.urlopen(request, timeout=10, context=unverified) as answer:
            families = list(text_string_to_metric_families(answer.read().decode()))
        samples = [sample for family in families for sample in family.samples]
        return [one for one in samples if one.labels.get("cluster_queue") == unique]

    def is_reported() -> bool:
        values = {one.name: one.value for one in read()}
        return (values.get("kueue_admitted_active_workloads"), values.get("kueue_cluster_queue_resource_usage")) == (
            1,
            1,
        )

    wait_until(is_reported, what="Kueue reports the workload", story=lambda: str(read()))
    found = read()
    expected = {name: labels.keys() - {"instance"} for name, labels, _ in scene.kueue("a100")}
    assert {one.name: one.labels.keys() for one in found if one.name in expected} == expected
    assert {one.value for one in found if one.name == "kueue_cluster_queue_nominal_quota"} == {4}
