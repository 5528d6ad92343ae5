"""What the labels of a simulated node say after a change of its MIG layout."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from devcluster.client.kube import Api
from devcluster.kubelet.mig_manager import CONFIG, STATE, MigManager
from tests.support.waiting import wait_until

PRODUCT = "NVIDIA-A100-SXM4-80GB"


@pytest.fixture
def node(admin: Api, unique: str) -> Iterator[str]:
    name = f"sliced-{unique}"
    labels = {
        "nvidia.com/gpu.product": PRODUCT,
        "nvidia.com/gpu.count": "2",
        CONFIG: "all-2g.20gb",
        "sliced": unique,
        "nvidia.com/mig-1g.10gb.me.count": "1",
        "nvidia.com/mig-1g.10gb.me.memory": "9856",
        "nvidia.com/mig-1g.10gb.memory": "9856",
        "nvidia.com/mig-1g.10gb.count": "4",
        "nvidia.com/mig-2g.20gb.count": "6",
    }
    admin.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}})
    amounts = {"nvidia.com/mig-1g.10gb": "4", "nvidia.com/mig-1g.10gb.me": "1", "nvidia.com/mig-2g.20gb": "6"}
    admin.patch_status("v1/nodes", name, {"capacity": amounts, "allocatable": amounts})
    yield name
    admin.delete("v1/nodes", name)


def test_labels_of_profiles_follow_the_layout(admin: Api, node: str, unique: str) -> None:
    with MigManager(admin, labels=f"sliced={unique}", pause_s=0) as manager:
        wait_until(lambda: node in manager.applied)
        admin.patch("v1/nodes", node, {"metadata": {"labels": {CONFIG: "all-1g.10gb"}}})
        wait_until(lambda: admin.get("v1/nodes", node)["metadata"]["labels"].get(STATE) == "success")
    found = admin.get("v1/nodes", node)
    of_profiles = {
        key: value for key, value in found["metadata"]["labels"].items() if key.startswith("nvidia.com/mig-")
    }
    assert of_profiles == {
        "nvidia.com/mig-1g.10gb.count": "14",
        "nvidia.com/mig-1g.10gb.memory": "9856",
        "nvidia.com/mig-1g.10gb.product": f"{PRODUCT}-MIG-1g.10gb",
    }
    assert found["status"]["capacity"]["nvidia.com/mig-1g.10gb"] == "14"
    assert found["status"]["capacity"]["nvidia.com/mig-2g.20gb"] == "0"
