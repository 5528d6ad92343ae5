"""Device classes of two drivers, and MIG slices of two profiles, admitted and charged by the real Kueue."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from accounts.core.actor import Actor
from catalog.models import GpuClass
from cluster.client.kube import Kube
from cluster.models import Cluster
from devcluster.client.kube import Api
from devcluster.controlplane import hardware
from tenants.models import Namespace, Tenant
from tests.support.cluster.worker import Worker, provision
from tests.support.rows import make
from tests.workloads.cases.run_state import is_running
from workloads.launch import actions
from workloads.launch.types import LaunchSpec

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("watcher")]
SLICES = "resource.k8s.io/v1/resourceslices"
OWN = "test.example/own-node"
TOLERATIONS = [{"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in ("nvidia.com/gpu", "amd.com/gpu")]


@pytest.fixture
def own_nodes(admin: Api, unique: str) -> Iterator[None]:
    """Nodes of `hardware/dra.yaml`: MIG slices, and a second driver. Only this test's claims match their devices."""
    found = hardware.read("dra")
    for one in found.objects:
        if one["kind"] == "DeviceClass":
            admin.apply(one)
    names = {"dra-mig": f"dra-mig-{unique}", "dra-amd": f"dra-amd-{unique}"}
    for node in found.nodes:
        if name := names.get(node["metadata"]["name"]):
            labels = {**node["metadata"]["labels"], "kubernetes.io/hostname": name, OWN: unique}
            annotations = {k: v for k, v in node["metadata"]["annotations"].items() if k != hardware.ORIGIN}
            hardware.add(admin, {**node, "metadata": {"name": name, "labels": labels, "annotations": annotations}})
    for one in found.slices:
        if name := names.get(one["spec"]["nodeName"]):
            admin.create(_renamed(one, name, unique))
    yield
    for name in names.values():
        admin.delete("v1/nodes", name)
        for one in admin.list(SLICES):
            if one["spec"].get("nodeName") == name:
                admin.delete(SLICES, one["metadata"]["name"])


def _renamed(one: dict[str, Any], name: str, unique: str) -> dict[str, Any]:
    product = {"productName": {"string": unique}}
    devices = [{**device, "attributes": {**device["attributes"], **product}} for device in one["spec"]["devices"]]
    spec = {**one["spec"], "nodeName": name, "pool": {**one["spec"]["pool"], "name": name}, "devices": devices}
    return {**one, "metadata": {"name": f"{name}-{one['spec']['driver']}"}, "spec": spec}


def of(cluster: Cluster, unique: str, name: str, device_class: str, resource: str, *, profile: str = "") -> GpuClass:
    driver = "gpu.amd.com" if device_class == "gpu.amd.com" else "gpu.nvidia.com"
    conditions = [f"device.attributes['{driver}'].productName == '{unique}'"]
    conditions += [f"device.attributes['{driver}'].profile == '{profile}'"] if profile else []
    return make.gpu_class(
        cluster, slug=f"{name}-{unique}", name=name, interface="dra", resource=resource, device_class=device_class,
        device_selector=" && ".join(conditions), node_labels={OWN: unique}, cpu_per_unit=1, memory_gib_per_unit=1,
        partition=profile or "none", tolerations=TOLERATIONS,
    )  # fmt: skip


def test_each_device_class_is_admitted_and_charged_under_its_own_resource(
    own_nodes: None,
    cluster: Cluster,
    granted: Tenant,
    namespace_a: Namespace,
    job: LaunchSpec,
    by_alice: Actor,
    worker: Worker,
    kube_worker: Kube,
    admin: Api,
    unique: str,
    clean_cluster: None,
) -> None:
    classes = [
        of(cluster, unique, "small", "mig.nvidia.com", "dra.portal/mig", profile="1g.10gb"),
        of(cluster, unique, "large", "mig.nvidia.com", "dra.portal/mig", profile="3g.40gb"),
        of(cluster, unique, "amd", "gpu.amd.com", "dra.portal/amd"),
    ]
    for one in classes:
        make.grant(granted, one, units=2)
    provision(namespace_a, kube_worker)
    for one in classes:
        actions.launch("team-a", replace(job, name=one.name, gpu_class=one.slug, units=2), by=by_alice)
    worker(lambda: all(is_running(one.name) for one in classes))

    queue = admin.get("kueue.x-k8s.io/v1beta2/clusterqueues", namespace_a.name)
    charged = {
        (flavor["name"].removesuffix(f"-{unique}").partition("-")[0], resource["name"]): resource["total"]
        for flavor in queue["status"]["flavorsUsage"]
        for resource in flavor["resources"]
        if resource["total"] != "0"
    }
    assert charged == {
        ("small", "dra.portal/mig"): "2",
        ("large", "dra.portal/mig"): "2",
        ("amd", "dra.portal/amd"): "2",
    }
    held = {
        claim["metadata"]["ownerReferences"][0]["name"].partition("-")[0]: sorted(
            (result["driver"], result["device"]) for result in claim["status"]["allocation"]["devices"]["results"]
        )
        for claim in admin.list("resource.k8s.io/v1/resourceclaims", namespace=namespace_a.name)
    }
    assert held == {
        "small": [("gpu.nvidia.com", "gpu-1"), ("gpu.nvidia.com", "gpu-2")],
        "large": [("gpu.nvidia.com", "gpu-3"), ("gpu.nvidia.com", "gpu-4")],
        "amd": [("gpu.amd.com", "gpu-0"), ("gpu.amd.com", "gpu-1")],
    }
