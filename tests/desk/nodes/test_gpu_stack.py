"""The GPU software of a node: what is judged from its labels and pods, and what the node page says about it."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from catalog.models import GpuClass
from cluster.client.kube import Kube
from cluster.models import Cluster, MirrorKind
from desk.nodes import queries as node_queries
from desk.nodes.gpu_stack import StackPod, is_nvidia, node_stack
from devcluster.client.kube import Api
from devcluster.controlplane import hardware
from tenants.models import Namespace
from tests.support.rows import mirrored
from tests.support.waiting import wait_until

DEPLOY = "nvidia.com/gpu.deploy."
T = datetime(2026, 11, 21, 9, tzinfo=UTC)


def pod(part: str, *, ready: bool = True, reason: str = "", container: str = "", restarts: int = 0) -> StackPod:
    return StackPod(part, "gpu-operator", f"{part}-x", ready, T, restarts, container, reason)


CASES: list[tuple[str, dict[str, str], list[StackPod], set[str], list[tuple[str, str]]]] = [
    ("a ready part", {DEPLOY + "driver": "true"}, [pod("driver")], {"driver"}, [("Driver", "ready")]),
    ("not ready", {DEPLOY + "driver": "true"}, [pod("driver", ready=False)], set(), [("Driver", "not_ready")]),
    (
        "crash looping",
        {},
        [pod("dcgm-exporter", ready=False, reason="CrashLoopBackOff")],
        set(),
        [("dcgm-exporter", "crash_looping")],
    ),
    ("missing here", {DEPLOY + "driver": "true"}, [], {"driver"}, [("Driver", "missing")]),
    ("nowhere: installed on the host", {DEPLOY + "driver": "true"}, [], set(), [("Driver", "unused")]),
    ("the plugin is always needed", {DEPLOY + "device-plugin": "true"}, [], set(), [("Device plugin", "missing")]),
    (
        "paused, though its pod still runs",
        {DEPLOY + "device-plugin": "paused-for-mig-change"},
        [pod("device-plugin")],
        {"device-plugin"},
        [("Device plugin", "paused")],
    ),
    ("driver upgrade pauses", {DEPLOY + "driver": "paused-for-driver-upgrade"}, [], set(), [("Driver", "paused")]),
    ("off for this node", {DEPLOY + "dcgm-exporter": "false"}, [], {"dcgm-exporter"}, [("dcgm-exporter", "off")]),
    ("driver of the host", {DEPLOY + "driver": "pre-installed"}, [], {"driver"}, [("Driver", "off")]),
    ("operands off", {DEPLOY + "operands": "false"}, [], {"driver"}, [("All parts", "off")]),
    ("upgrade done", {"nvidia.com/gpu-driver-upgrade-state": "upgrade-done"}, [], set(), []),
    (
        "upgrade not done",
        {"nvidia.com/gpu-driver-upgrade-state": "drain-required"},
        [],
        set(),
        [("Driver upgrade", "changing")],
    ),
    (
        "upgrade failed",
        {"nvidia.com/gpu-driver-upgrade-state": "upgrade-failed"},
        [],
        set(),
        [("Driver upgrade", "failed")],
    ),
    ("layout made", {"nvidia.com/mig.config.state": "success"}, [], set(), []),
    ("layout changes", {"nvidia.com/mig.config.state": "pending"}, [], set(), [("MIG layout", "changing")]),
    ("layout failed", {"nvidia.com/mig.config.state": "failed"}, [], set(), [("MIG layout", "failed")]),
    (
        "of two pods of a part, the one that is not ready counts",
        {},
        [pod("driver", ready=False), pod("driver")],
        {"driver"},
        [("Driver", "not_ready")],
    ),
    ("nothing", {}, [], {"driver"}, []),
]


@pytest.mark.parametrize(
    ("labels", "pods", "in_cluster", "lines"), [one[1:] for one in CASES], ids=[c[0] for c in CASES]
)
def test_judgement(
    labels: dict[str, str], pods: list[StackPod], in_cluster: set[str], lines: list[tuple[str, str]]
) -> None:
    found = node_stack("n", labels, pods, in_cluster=in_cluster, has_devices=False, label_times={})
    assert [(line.title, line.state) for line in found.lines] == lines
    for line in found.lines:
        is_wrong = line.state not in ("ready", "off", "unused")
        assert line.is_wrong == is_wrong
        assert bool(line.effect and line.remedy and line.command) == is_wrong


def test_the_way_out_names_the_container_that_does_not_work_and_since_when() -> None:
    stuck = pod("driver", ready=False, reason="CrashLoopBackOff", container="nvidia-driver-ctr", restarts=3)
    (line,) = node_stack("n", {}, [stuck], in_cluster=set(), has_devices=False, label_times={}).lines
    assert line.command == "kubectl logs -n gpu-operator driver-x -c nvidia-driver-ctr --previous"
    assert line.since == T
    assert "3 restarts" in line.detail


def test_a_node_with_devices_needs_no_device_plugin_of_the_operator() -> None:
    """Another plugin or a DRA driver may serve them."""
    labels = {DEPLOY + "device-plugin": "true"}
    (line,) = node_stack("n", labels, [], in_cluster=set(), has_devices=True, label_times={}).lines
    assert line.state == "unused"


def test_since_when_a_label_has_its_value() -> None:
    labels = {"nvidia.com/mig.config.state": "failed", "nvidia.com/gpu-driver-upgrade-state": "upgrade-failed"}
    times = {"nvidia.com/mig.config.state": T}
    found = node_stack("n", labels, [], in_cluster=set(), has_devices=False, label_times=times).lines
    assert [(line.title, line.since) for line in found] == [("Driver upgrade", None), ("MIG layout", T)]


def test_version_and_operator() -> None:
    version = "nvidia.com/cuda.driver-version."
    full = {f"{version}full": "580.126.09", f"{version}major": "1", f"{DEPLOY}driver": "true"}
    parts = {f"{version}major": "550", f"{version}minor": "54"}
    found = [node_stack("n", one, [], in_cluster=set(), has_devices=False, label_times={}) for one in (full, parts, {})]
    assert [(one.driver, one.has_operator) for one in found] == [("580.126.09", True), ("550.54", False), ("", False)]


def test_which_nodes_are_judged() -> None:
    assert is_nvidia({"nvidia.com/gpu.present": "true"}, {})
    assert is_nvidia({}, {"nvidia.com/mig-1g.10gb": 0})
    assert not is_nvidia({"nvidia.com/gpu.present": "false"}, {"amd.com/gpu": 8})


# ---- the node page ---------------------------------------------------------------------------------------------------


def operand(app: str, *, node: str = "a100-1", namespace: str = "gpu-operator", ready: bool = True) -> dict[str, Any]:
    """A pod of a DaemonSet of the operator, as the API server returns it."""
    raw = mirrored.pod(f"{app}-{node}", node=node, namespace=namespace)
    raw["metadata"]["labels"] = {"app": app, "controller-revision-hash": "5d8f", "pod-template-generation": "1"}
    raw["metadata"]["ownerReferences"] = [{"kind": "DaemonSet", "name": app, "uid": "d", "controller": True}]
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting failed container"}}
    raw["status"] |= {
        "conditions": [
            {"type": "Ready", "status": str(ready), "lastTransitionTime": "2026-11-21T09:00:00Z"},
        ],
        "initContainerStatuses": [{"name": "toolkit-validation", "ready": True, "restartCount": 0, "state": {}}],
        "containerStatuses": [
            {"name": "main", "ready": ready, "restartCount": 0 if ready else 12, "state": {} if ready else waiting}
        ],
    }
    return raw


def labelled(cluster: Cluster, labels: dict[str, str], **more: Any) -> None:
    nodes = [mirrored.ready(copy.deepcopy(one)) for one in hardware.read("mixed").nodes]
    changed = next(one for one in nodes if one["metadata"]["name"] == "a100-1")["metadata"]
    kept = {key: value for key, value in changed["labels"].items() if not key.startswith(DEPLOY)}
    changed["labels"] = kept | labels
    slices = [mirrored.with_metadata(one) for one in hardware.read("mixed").slices]
    mirrored.seen(cluster, Node=nodes, ResourceSlice=slices, **more)


def page(user: User, node: str = "a100-1") -> str:
    client = Client()
    client.force_login(user)
    return client.get(f"/nodes/{node}").content.decode()


@pytest.mark.django_db
def test_the_page_says_what_does_not_work_and_which_classes_are_there(
    cluster: Cluster, a100: GpuClass, namespace_a: Namespace, olga: User
) -> None:
    names = ("device-plugin", "gpu-feature-discovery", "driver", "dcgm-exporter")
    pods = [
        operand("nvidia-device-plugin-daemonset", ready=False),
        operand("gpu-feature-discovery", node="a100-2"),
        operand("nvidia-dcgm-exporter"),
        # A team's pod does not become part of the stack by its labels.
        operand("nvidia-driver-daemonset", namespace=namespace_a.name),
    ]
    labelled(cluster, {DEPLOY + name: "true" for name in names}, Pod=pods)
    stack = node_queries.node_page(cluster, "a100-1").stack
    assert stack is not None
    assert [(line.title, line.state) for line in stack.lines] == [
        ("Driver", "unused"),
        ("Device plugin", "crash_looping"),
        ("GPU Feature Discovery", "missing"),
        ("dcgm-exporter", "ready"),
    ]
    shown = page(olga)
    assert "kubectl logs -n gpu-operator nvidia-device-plugin-daemonset-a100-1 -c main --previous" in shown
    assert "12 restarts" in shown
    assert "Classes on this node:" in shown
    assert f"{a100.name}</a> (all units allocatable)" in shown
    assert "is not installed for this node" not in shown


@pytest.mark.django_db
def test_a_pod_without_a_daemon_set_is_no_part(cluster: Cluster, olga: User) -> None:
    single = operand("nvidia-device-plugin-daemonset")
    single["metadata"]["ownerReferences"] = []
    labelled(cluster, {}, Pod=[single])
    stack = node_queries.node_page(cluster, "a100-1").stack
    assert stack is not None
    assert not stack.has_operator
    assert stack.lines == ()
    assert "GPU Operator is not installed for this node" in page(olga)


@pytest.mark.django_db
def test_other_nodes_and_a_stale_mirror(cluster: Cluster, olga: User) -> None:
    labelled(cluster, {DEPLOY + "device-plugin": "true"}, Pod=[operand("nvidia-device-plugin-daemonset")])
    assert node_queries.node_page(cluster, "gaudi").stack is None
    assert "GPU software" not in page(olga, "gaudi")
    MirrorKind.objects.filter(cluster_id=cluster.pk, kind="Pod").update(heard_at=T, listed_at=T)
    assert node_queries.node_page(cluster, "a100-1").stack is None
    assert "Unknown: there are no current updates from the cluster." in page(olga)


@pytest.mark.django_db
def test_pods_of_real_daemon_sets_as_the_watcher_reads_them(
    cluster: Cluster, admin: Api, kube_watcher: Kube, unique: str
) -> None:
    """The DaemonSet controller makes the pods, and the watcher's own rights are enough to list them."""
    namespace, node = f"operator-{unique}", "a100-2"
    admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    try:
        for app in ("nvidia-device-plugin-daemonset", "nvidia-operator-validator"):
            admin.create(_daemon_set(app, namespace, node))

        def operands() -> list[dict[str, Any]]:
            found = kube_watcher.list_page("api/v1/pods", limit=5000)["items"]
            return [one for one in found if one["metadata"]["namespace"] == namespace]

        def are_ready() -> bool:
            conditions = [one["status"].get("conditions") or [] for one in operands()]
            return len(conditions) == 2 and all(
                any(one["type"] == "Ready" and one["status"] == "True" for one in each) for each in conditions
            )

        wait_until(are_ready, what="the pods of both DaemonSets are ready")
        plugin = next(one for one in operands() if one["metadata"]["labels"]["app"].startswith("nvidia-device"))
        waiting = {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}
        ended = {
            "name": "main",
            "ready": False,
            "restartCount": 3,
            "image": "i",
            "imageID": "",
            "state": {"waiting": waiting},
        }
        since = {"type": "Ready", "status": "False", "lastTransitionTime": "2026-11-21T09:00:00Z"}
        admin.patch_status(
            "v1/pods",
            plugin["metadata"]["name"],
            {"conditions": [since], "containerStatuses": [ended]},
            namespace=namespace,
        )
        nodes = kube_watcher.list_page("api/v1/nodes", limit=5000)["items"]
        mirrored.seen(cluster, Node=nodes, Pod=operands())
        stack = node_queries.node_page(cluster, node).stack
        assert stack is not None
        found = {line.title: (line.state, line.since) for line in stack.lines}
        assert found["Device plugin"] == ("crash_looping", T)
        assert found["Operator validator"][0] == "ready"
    finally:
        admin.delete("v1/namespaces", namespace)


def _daemon_set(app: str, namespace: str, node: str) -> dict[str, Any]:
    labels = {"app": app}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": app, "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "nodeSelector": {"kubernetes.io/hostname": node},
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10"}],
                },
            },
        },
    }
