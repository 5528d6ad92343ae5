"""At least so many GiB: the real API server takes the selector, the real Kueue admits by units, and the real scheduler
allocates by memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

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
from tests.workloads.cases.live import told
from tests.workloads.cases.run_state import is_running
from tests.workloads.cases.situations_nodes import ON_NODES
from tests.workloads.cases.staged import until_as_written
from workloads.launch import actions
from workloads.launch.options import Options
from workloads.launch.types import LaunchSpec

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("watcher")]
SLICES, CLAIMS = "resource.k8s.io/v1/resourceslices", "resource.k8s.io/v1/resourceclaims"
OWN, DRIVER = "test.example/own-node", "gpu.amd.com"
GIB_OF_DEVICES = (20, 20, 40)


@pytest.fixture
def own_node(admin: Api, unique: str) -> Iterator[str]:
    """A node of `hardware/dra.yaml` with devices of two sizes. Only this test's claims match them."""
    found, name = hardware.read("dra"), f"dra-memory-{unique}"
    for one in found.objects:
        if one["kind"] == "DeviceClass":
            admin.apply(one)
    like = next(one for one in found.nodes if one["metadata"]["name"] == "dra-amd")
    labels = {**like["metadata"]["labels"], "kubernetes.io/hostname": name, OWN: unique}
    annotations = {k: v for k, v in like["metadata"]["annotations"].items() if k != hardware.ORIGIN}
    hardware.add(admin, {**like, "metadata": {"name": name, "labels": labels, "annotations": annotations}})
    devices = [
        {
            "name": f"gpu-{number}",
            "attributes": {"productName": {"string": unique}},
            "capacity": {"memory": {"value": f"{gib}Gi"}},
        }
        for number, gib in enumerate(GIB_OF_DEVICES)
    ]
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    admin.create(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": name},
            "spec": {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": devices},
        }
    )
    yield name
    admin.delete(SLICES, name)
    admin.delete("v1/nodes", name)


def held(admin: Api, namespace: str) -> dict[str, list[str]]:
    """Job → its devices."""
    return {
        claim["metadata"]["ownerReferences"][0]["name"].rpartition("-")[0]: [
            result["device"] for result in claim["status"]["allocation"]["devices"]["results"]
        ]
        for claim in admin.list(CLAIMS, namespace=namespace)
        if "allocation" in claim.get("status", {})
    }


def test_the_second_run_waits_for_the_device_that_the_first_one_has(
    own_node: str,
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
    sized: GpuClass = make.gpu_class(
        cluster, slug=f"sized-{unique}", name="MI", interface="dra", resource="dra.portal/amd", device_class=DRIVER,
        device_selector=f"device.attributes['{DRIVER}'].productName == '{unique}'", node_labels={OWN: unique},
        cpu_per_unit=1, memory_gib_per_unit=1,
        tolerations=[{"key": "amd.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
    )  # fmt: skip
    make.grant(granted, sized, units=3)
    provision(namespace_a, kube_worker)
    wanted = replace(job, gpu_class=sized.slug, units=1, options=Options(gpu_memory_gib=30))
    for name in ("first", "second"):
        actions.launch("team-a", replace(wanted, name=name), by=by_alice)
        worker(lambda name=name: told().get(name, ("", ""))[1] in ("running", "gpu_memory_unavailable"))
    actions.launch("team-a", replace(wanted, name="any", options=Options()), by=by_alice)
    worker(lambda: is_running("any"))

    pods = {
        pod["metadata"]["labels"]["gpu-portal/workload"] for pod in admin.list("v1/pods", namespace=namespace_a.name)
    }
    assert pods == {"first", "second", "any"}, "Kueue counts units"
    devices = held(admin, namespace_a.name)
    assert devices.keys() == {"first-1", "any-1"}
    assert devices["first-1"] == ["gpu-2"]
    until_as_written(worker, by_alice, {"second": ON_NODES["DRA devices of a size short"]})

    actions.stop("team-a", "first", by=by_alice)
    worker(lambda: is_running("second"))
    assert held(admin, namespace_a.name)["second-1"] == ["gpu-2"]
