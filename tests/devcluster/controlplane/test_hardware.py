from __future__ import annotations

from typing import Any

import pytest

from devcluster.client.kube import Api
from devcluster.client.types import Json
from devcluster.controlplane import hardware
from tests.support.waiting import wait_until


def node_of(name: str) -> Json:
    return next(node for node in hardware.read("mixed").nodes if node["metadata"]["name"] == name)


def gpu_pod(namespace: str, name: str, **spec: Any) -> Json:
    container = {"name": "main", "image": "example/train:1", **spec.pop("container", {})}
    everywhere = [{"operator": "Exists"}]
    spec = {"containers": [container], "tolerations": everywhere, "restartPolicy": "Never", **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def asks(resource: str, count: int = 1) -> Json:
    return {"resources": {"limits": {resource: str(count)}}}


def node_of_pod(admin: Api, namespace: str, name: str) -> str:
    return str(admin.get("v1/pods", name, namespace=namespace)["spec"].get("nodeName", ""))


# what the files say


def test_mixed_has_eight_nodes_of_four_a100_and_one_of_everything_else():
    products = {
        node["metadata"]["name"]: node["metadata"]["labels"].get("nvidia.com/gpu.product")
        for node in hardware.read("mixed").nodes
    }
    of_issue = [name for name in products if name.startswith("a100-") and name != "a100-mig-single"]
    assert len(of_issue) == 8
    assert products["h100"] == "NVIDIA-H100-80GB-HBM3"
    assert {"mi300x", "intel-xe", "gaudi", "cpu-1", "cpu-2", "a100-mig-single"} <= set(products)


def test_every_mig_card_of_the_mixed_node_is_cut_all_balanced_and_one_has_the_media_engines():
    per_card = {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}
    expected = {f"nvidia.com/mig-{profile}": 4 * count for profile, count in per_card.items()}
    expected["nvidia.com/mig-1g.10gb"] -= 1
    expected["nvidia.com/mig-1g.10gb.me"] = 1
    allocatable = node_of("a100-mig")["status"]["allocatable"]
    assert {name: int(allocatable[name]) for name in expected} == expected
    labels = node_of("a100-mig")["metadata"]["labels"]
    assert {name: int(labels[f"{name}.count"]) for name in expected} == expected


@pytest.mark.parametrize(
    ("name", "resource", "product", "sharing"),
    [
        ("a100-shared", "nvidia.com/gpu.shared", "NVIDIA-A100-SXM4-80GB", "time-slicing"),
        ("a100-sliced", "nvidia.com/gpu", "NVIDIA-A100-SXM4-80GB-SHARED", "time-slicing"),
        ("a100-mps", "nvidia.com/gpu", "NVIDIA-A100-SXM4-80GB-SHARED", "mps"),
    ],
)
def test_shared_cards_say_so_in_labels_whatever_their_resource_is_called(name, resource, product, sharing):
    node = node_of(name)
    labels = node["metadata"]["labels"]
    assert node["status"]["allocatable"][resource] == "16"
    assert labels["nvidia.com/gpu.count"] == "4"
    assert labels["nvidia.com/gpu.replicas"] == "4"
    assert labels["nvidia.com/gpu.product"] == product
    assert labels["nvidia.com/gpu.sharing-strategy"] == sharing


def test_a_single_strategy_node_sells_slices_under_the_name_of_a_card():
    node = node_of("a100-mig-single")
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "28"
    assert node["metadata"]["labels"]["nvidia.com/gpu.product"] == "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb"


def test_nodes_with_accelerators_are_tainted_and_others_are_not():
    for node in hardware.read("mixed").nodes:
        assert bool(node["spec"]["taints"]) == (not node["metadata"]["name"].startswith("cpu-"))


def test_morning_has_thirty_two_whole_cards_twelve_slices_and_sixteen_shares():
    found = [node["status"]["allocatable"] for node in hardware.read("morning").nodes]
    resources = ("nvidia.com/gpu", "nvidia.com/mig-2g.20gb", "nvidia.com/gpu.shared")
    units = [tuple(int(one.get(resource, 0)) for resource in resources) for one in found]
    assert units == [(4, 0, 0)] * 8 + [(0, 12, 0), (0, 0, 16)]


# what the cluster makes of them


def test_the_cluster_has_what_the_file_says(admin: Api, services: Json):
    hardware_of_cluster = {node["metadata"]["name"]: node for node in admin.list("v1/nodes")}
    for wanted in hardware.read("mixed").nodes:
        node = hardware_of_cluster[wanted["metadata"]["name"]]
        assert node["status"]["allocatable"] == wanted["status"]["allocatable"]
        assert wanted["metadata"]["labels"].items() <= node["metadata"]["labels"].items()
        assert [c["status"] for c in node["status"]["conditions"] if c["type"] == "Ready"] == ["True"]


def test_loading_again_repairs_and_leaves_other_nodes_alone(admin: Api, unique: str):
    # Tainted: a pod of another test would go with it.
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    labels = {"nvidia.com/gpu.product": "T4"}
    own = hardware.node(f"own-{unique}", devices={"nvidia.com/gpu": 2}, labels=labels, taints=[taint])
    hardware.add(admin, own)
    try:
        body = {"metadata": {"labels": {f"devcluster-test/{unique}": "drift"}}}
        admin.patch("v1/nodes", "gaudi", body)
        hardware.load(admin, "mixed")
        assert f"devcluster-test/{unique}" not in admin.get("v1/nodes", "gaudi")["metadata"]["labels"]
        assert admin.get("v1/nodes", f"own-{unique}")["status"]["allocatable"]["nvidia.com/gpu"] == "2"
    finally:
        admin.delete("v1/nodes", f"own-{unique}")


@pytest.mark.timeout(240)
@pytest.mark.usefixtures("whole_hardware")
def test_the_one_slice_with_media_engines_is_given_once(admin: Api, namespace: str):
    for name in ("first", "second"):
        admin.create(gpu_pod(namespace, name, container=asks("nvidia.com/mig-1g.10gb.me")))
    wait_until(lambda: {node_of_pod(admin, namespace, name) for name in ("first", "second")} == {"a100-mig", ""})
    waiting = next(n for n in ("first", "second") if not node_of_pod(admin, namespace, n))

    def reason() -> str:
        conditions = admin.get("v1/pods", waiting, namespace=namespace)["status"].get("conditions", [])
        return next((c["message"] for c in conditions if c.get("reason") == "Unschedulable"), "")

    assert "Insufficient nvidia.com/mig-1g.10gb.me" in str(wait_until(reason))


def test_an_h100_is_allocated_through_a_claim(admin: Api, namespace: str):
    memory = "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('79Gi')) >= 0"
    exactly = {"deviceClassName": "gpu.nvidia.com", "selectors": [{"cel": {"expression": memory}}]}
    admin.create(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "one", "namespace": namespace},
            "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}},
        }
    )
    admin.create(
        gpu_pod(
            namespace,
            "trainer",
            container={"resources": {"claims": [{"name": "gpu"}]}},
            resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "one"}],
        )
    )
    wait_until(lambda: node_of_pod(admin, namespace, "trainer") == "h100")
    (claim,) = admin.list("resource.k8s.io/v1/resourceclaims", namespace=namespace)
    (result,) = claim["status"]["allocation"]["devices"]["results"]
    assert (result["driver"], result["pool"]) == ("gpu.nvidia.com", "h100")
