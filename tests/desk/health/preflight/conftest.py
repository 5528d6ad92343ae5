"""A cluster of its own, without the portal, with what a good cluster has and the embedded one lacks: a network plugin,
DNS, Kueue's Deployment and settings, a device plugin. Its other parts are simulated nodes and a real Kueue.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from devcluster.client.kube import Api
from devcluster.controlplane.identities import DEPLOY, manifests
from devcluster.services.stack import Options, Stack
from tests.support.shipped import ROOT
from tests.support.waiting import wait_until

Json = dict[str, Any]
KUEUE_SETTINGS = (ROOT / "deploy" / "kueue" / "manager-config.yaml").read_text()
# The simulated nodes, not those that a test adds: no kubelet runs there.
EVERYWHERE = {"tolerations": [{"operator": "Exists"}], "nodeSelector": {"kubernetes.io/os": "linux"}}


def workload(kind: str, name: str, namespace: str, image: str, **more: Any) -> Json:
    labels = {"app": name}
    pod = {**EVERYWHERE, "containers": [{"name": "main", "image": image}], **more}
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec}


def kueue_deployment(image: str) -> Json:
    volume = {"name": "settings", "configMap": {"name": "kueue-manager-config"}}
    return workload("Deployment", "kueue-controller-manager", "kueue-system", image, volumes=[volume])


def kueue_config_map(settings: str) -> Json:
    metadata = {"name": "kueue-manager-config", "namespace": "kueue-system"}
    data = {"controller_manager_config.yaml": settings}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def dns_service(namespace: str, **port: Any) -> Json:
    ports = [{"name": "dns", "protocol": "UDP", "port": 53, "targetPort": 53, **port}]
    metadata = {"name": "kube-dns", "namespace": namespace, "labels": {"k8s-app": "kube-dns"}}
    spec = {"ports": ports, "selector": {"k8s-app": "kube-dns"}}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


GOOD = (
    kueue_deployment("registry.k8s.io/kueue/kueue:v0.18.3"),
    kueue_config_map(KUEUE_SETTINGS),
    dns_service("kube-system"),
    workload("DaemonSet", "calico-node", "kube-system", "calico/node:v3.31.0"),
    workload("DaemonSet", "nvidia-device-plugin-daemonset", "kube-system", "nvidia/k8s-device-plugin:v0.18.0"),
)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    state = tmp_path_factory.mktemp("preflight")
    nowhere = "none://"
    with Stack(Options(state=state, notebooks=False, database_url=nowhere, redis_url=nowhere)) as stack:
        stack.start()
        yield stack


@pytest.fixture(scope="module")
def cluster_admin(stack: Stack) -> Api:
    api = stack.admin
    for shipped in manifests(DEPLOY):
        path = path_of_object(api, shipped)
        status, data = api.raw("DELETE", path)
        assert status in (200, 202, 404), data
    wait_until(lambda: api.find("v1/namespaces", "gpu-portal") is None, what="the portal's namespace is gone")
    for one in GOOD:
        api.apply(one)
    wait_until(lambda: is_rolled_out(api, "calico-node") and is_rolled_out(api, "nvidia-device-plugin-daemonset"))
    return api


def is_rolled_out(api: Api, daemon_set: str) -> bool:
    status = api.get("apps/v1/daemonsets", daemon_set, namespace="kube-system").get("status", {})
    return 0 < status.get("desiredNumberScheduled", 0) == status.get("numberReady", 0)


def path_of_object(api: Api, one: Json) -> str:
    return api._path_for(one)
