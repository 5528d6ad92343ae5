"""The first admission policy: of a node the worker may change only what maintenance writes, and of a Workload only
whether it is active. For each refused change, one that differs only in that part passes.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from cluster.manifests.metadata import KUEUE_API
from devcluster.client.kube import MERGE, Api, path_of
from devcluster.controlplane import hardware
from devcluster.kubelet.mig_manager import install_layout_file
from operations.maintenance.node_patch import ANNOTATION, LABELS, TAINT
from tests.deploy.fences.test_fence_worker import assert_fenced
from tests.support.cluster.identities import until

Json = dict[str, Any]
OTHERS = {"key": "example.org/reserved", "value": "them", "effect": "NoSchedule"}
OURS = {"key": TAINT, "value": "7", "effect": "NoSchedule"}


def of(part: str, **changes: Any) -> Json:
    return {"metadata": {part: changes}}


ALLOWED: dict[str, Json] = {
    "cordon": {"spec": {"unschedulable": True}},
    "taint": {"spec": {"taints": [OTHERS, OURS]}},
    "annotation": of("annotations", **{ANNOTATION: "7"}),
    **{label: of("labels", **{label: "all-balanced"}) for label in LABELS},
    "state of a layout": of("labels", **{"nvidia.com/mig.config.state": None}),
}
REFUSED: dict[str, Json] = {
    "a taint of others goes": {"spec": {"taints": [OURS]}},
    "a taint of others": {"spec": {"taints": [OTHERS, {**OTHERS, "key": "example.org/more"}]}},
    "our taint throws pods out": {"spec": {"taints": [OTHERS, {**OURS, "effect": "NoExecute"}]}},
    "another label": of("labels", **{"nvidia.com/gpu.product": "H100"}),
    "another label goes": of("labels", **{"nvidia.com/gpu.product": None}),
    "a new label": of("labels", team="a"),
    "a state that the MIG manager did not report": of("labels", **{"nvidia.com/mig.config.state": "failed"}),
    "another annotation": of("annotations", **{"example.org/owner": "me"}),
    "an annotation goes": of("annotations", **{"example.org/theirs": None}),
    "a finalizer": of("finalizers") | {"metadata": {"finalizers": ["example.org/keep"]}},
}


@pytest.fixture
def node(admin: Api) -> Iterator[str]:
    name = f"fence-{uuid.uuid4().hex[:8]}"
    labels = {"nvidia.com/gpu.product": "A100", "nvidia.com/mig.config.state": "success"}
    hardware.add(admin, hardware.node(name, devices={}, labels=labels, taints=[OTHERS]))
    admin.patch("v1/nodes", name, of("annotations", **{"example.org/theirs": "1"}))
    # The node controller's own taints go when the node is ready.
    until(lambda: admin.get("v1/nodes", name)["spec"].get("taints") == [OTHERS], "the node is ready")
    yield name
    admin.delete("v1/nodes", name)


def tried(api: Api, path: str, body: Json) -> tuple[int, str]:
    status, data = api.raw("PATCH", path, body, params={"dryRun": "All"}, content_type=MERGE)
    return status, data.decode()


@pytest.mark.parametrize("case", ALLOWED)
def test_what_maintenance_writes_passes(worker: Api, node: str, case: str) -> None:
    status, text = tried(worker, path_of("v1/nodes", node), ALLOWED[case])
    assert status == 200, text


@pytest.mark.parametrize("case", REFUSED)
def test_nothing_else_of_a_node_may_be_changed(worker: Api, admin: Api, node: str, case: str) -> None:
    body = REFUSED[case]
    assert_fenced(tried(worker, path_of("v1/nodes", node), body))
    status, text = tried(admin, path_of("v1/nodes", node), body)
    assert status == 200, text


def test_a_node_is_neither_made_nor_deleted_and_its_status_not_written(worker: Api, node: str) -> None:
    """By its rights; the fence would refuse it too."""
    other = hardware.node(f"fence-{uuid.uuid4().hex[:8]}", devices={})
    assert worker.raw("POST", path_of("v1/nodes"), other)[0] == 403
    assert worker.raw("DELETE", path_of("v1/nodes", node))[0] == 403
    assert worker.raw("PATCH", path_of("v1/nodes", node) + "/status", {"status": {}}, content_type=MERGE)[0] == 403


@pytest.fixture
def workload(admin: Api, ours: str) -> str:
    pod = {"spec": {"containers": [{"name": "c", "image": "i", "resources": {}}], "restartPolicy": "Never"}}
    admin.create(
        {
            "apiVersion": KUEUE_API,
            "kind": "Workload",
            "metadata": {"name": "held", "namespace": ours},
            "spec": {"queueName": "gpu-portal", "podSets": [{"name": "main", "count": 1, "template": pod}]},
        }
    )
    return path_of(f"{KUEUE_API}/workloads", "held", namespace=ours)


def test_of_a_workload_only_whether_it_is_active(worker: Api, workload: str) -> None:
    for is_active in (False, True):
        status, text = tried(worker, workload, {"spec": {"active": is_active}})
        assert status == 200, text
    for body in (
        {"spec": {"queueName": "another"}},
        {"spec": {"priority": 1000}},
        {"spec": {"maximumExecutionTimeSeconds": 60}},
        of("labels", team="b"),
        of("annotations", team="b"),
        {"metadata": {"finalizers": ["example.org/keep"]}},
    ):
        assert_fenced(tried(worker, workload, body))


LAYOUTS = {"gpu-portal/mig-layouts": "true"}
REFUSED_OF_LAYOUTS: dict[str, Json] = {
    "another key": {"data": {"notes": "x"}},
    "another key goes": {"data": {"more": None}},
    "another key changes": {"data": {"more": "x"}},
    "binary data": {"binaryData": {"more-bytes": "eA=="}},
    "its label": of("labels", **{"gpu-portal/mig-layouts": "yes"}),
    "another label": of("labels", team="a"),
    "an annotation": of("annotations", **{"example.org/owner": "me"}),
    "a finalizer": {"metadata": {"finalizers": ["example.org/keep"]}},
    "for good": {"immutable": True},
}


@pytest.fixture
def layouts(admin: Api, worker: Api) -> Iterator[str]:
    """A namespace of the site with the rights of deploy/mig."""
    name = f"fence-{uuid.uuid4().hex[:8]}"
    install_layout_file(admin, namespace=name, name="layouts")
    admin.patch("v1/configmaps", "layouts", {"data": {"more": "y"}}, namespace=name)
    path = path_of("v1/configmaps", "layouts", namespace=name)
    until(lambda: worker.raw("GET", path)[0] == 200, "the right is known")
    yield path
    admin.delete("v1/namespaces", name)


def test_layouts_may_be_added_to_the_file_that_the_site_labels(worker: Api, admin: Api, layouts: str) -> None:
    change = {"data": {"config.yaml": "version: v1"}}
    status, text = tried(worker, layouts, change)
    assert status == 200, text
    for case, body in REFUSED_OF_LAYOUTS.items():
        assert_fenced(tried(worker, layouts, body))
        status, text = tried(admin, layouts, body)
        assert status == 200, (case, text)
    admin.request("PATCH", layouts, of("labels", **{"gpu-portal/mig-layouts": None}), content_type=MERGE)
    assert_fenced(tried(worker, layouts, change))
    assert_fenced(tried(worker, layouts, change | of("labels", **LAYOUTS)))


def test_no_other_config_map_beside_it_may_be_read_or_written(worker: Api, admin: Api, layouts: str) -> None:
    namespace = layouts.split("/")[4]
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "x", "namespace": namespace, "labels": LAYOUTS},
    }
    admin.create(body)
    other = path_of("v1/configmaps", "x", namespace=namespace)
    assert worker.raw("GET", other)[0] == 403
    assert tried(worker, other, {"data": {"config.yaml": "x"}})[0] == 403
    assert worker.raw("DELETE", layouts)[0] == 403
