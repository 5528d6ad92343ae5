from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from devcluster.client.kube import Api
from devcluster.client.types import Json
from devcluster.controlplane import hardware
from devcluster.kubelet.scripted import ScriptedKubelet, ends, runs, starts_slowly
from tests.support.waiting import wait_until


@pytest.fixture
def kubelet(admin: Api) -> ScriptedKubelet:
    return ScriptedKubelet(admin)


def pod(namespace: str, name: str = "trainer", **labels: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "example/train:1"}]},
    }


def job(namespace: str) -> Json:
    """With the failure policy of a notebook's Job: disruptions do not count, crashes end it."""
    ignore = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    crash = {"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [0]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "run", "namespace": namespace},
        "spec": {
            "backoffLimit": 3,
            "podReplacementPolicy": "Failed",
            "podFailurePolicy": {"rules": [ignore, crash]},
            "template": {"spec": pod(namespace)["spec"]},
        },
    }


@pytest.fixture
def seen(admin: Api, namespace: str) -> Callable[..., Json]:
    def status(name: str = "trainer") -> Json:
        found = admin.find("v1/pods", name, namespace=namespace)
        return found["status"] if found else {}

    return status


@pytest.fixture
def events(admin: Api, namespace: str) -> Callable[[], list[tuple[str, str, str]]]:
    """(type, reason, component) of the kubelet's events."""

    def listed() -> list[tuple[str, str, str]]:
        found = admin.list("v1/events", namespace=namespace)
        return [(e["type"], e["reason"], e["source"].get("component", "")) for e in found if "source" in e]

    return listed


def only_state(status: Json) -> Json:
    (container,) = status["containerStatuses"]
    return container["state"]


def job_condition(admin: Api, namespace: str, kind: str) -> Json | None:
    conditions = admin.get("batch/v1/jobs", "run", namespace=namespace)["status"].get("conditions", [])
    return next((c for c in conditions if c["type"] == kind and c["status"] == "True"), None)


# claiming


def test_a_claimed_pod_belongs_to_the_script_and_others_go_on(admin, namespace, kubelet, seen):
    with kubelet.claim(namespace, labels={"mine": "yes"}):
        admin.create(pod(namespace, "scripted", mine="yes"))
        admin.create(pod(namespace, "usual"))
        wait_until(lambda: seen("usual").get("phase") == "Running")
        assert "containerStatuses" not in seen("scripted")
        kubelet.running(kubelet.bound(namespace, labels="mine=yes"), ready=False)
        assert seen("scripted")["phase"] == "Running"


def test_a_deleted_pod_ends_as_failed_and_goes_unless_it_is_stuck(admin, namespace, kubelet, seen):
    with kubelet.claim(namespace, script=runs, stuck=True) as claim:
        admin.create(pod(namespace))
        wait_until(lambda: seen().get("phase") == "Running")
        admin.delete("v1/pods", "trainer", namespace=namespace)
        assert seen()["phase"] == "Running"
        watch = admin.watch("v1/pods", namespace=namespace, timeout_s=10)
        kubelet.unstick(claim)
        last = next(obj for kind, obj in watch if kind == "DELETED")
        assert last["status"]["phase"] == "Failed"
    assert seen() == {}


def test_after_a_claim_its_pods_can_be_deleted_like_others(admin, namespace, kubelet, seen):
    with kubelet.claim(namespace, script=runs):
        admin.create(pod(namespace))
        wait_until(lambda: seen().get("phase") == "Running")
    admin.delete("v1/pods", "trainer", namespace=namespace)
    wait_until(lambda: not seen())


# statuses


@pytest.mark.parametrize(
    ("play", "reason", "text"),
    [
        (ScriptedKubelet.pull_error, "ErrImagePull", "failed to resolve reference"),
        (ScriptedKubelet.pull_backoff, "ImagePullBackOff", 'Back-off pulling image "example/train:1": ErrImagePull: '),
        (lambda k, p: k.config_error(p, 'secret "s" not found'), "CreateContainerConfigError", 'secret "s" not found'),
        (ScriptedKubelet.crash_loop, "CrashLoopBackOff", "back-off 40s restarting failed container=main"),
    ],
)
def test_waiting_containers_say_why(admin, namespace, kubelet, seen, events, play: Any, reason: str, text: str):
    with kubelet.claim(namespace):
        admin.create(pod(namespace))
        play(kubelet, kubelet.bound(namespace))
        waiting = only_state(seen())["waiting"]
        assert waiting["reason"] == reason
        assert text in waiting["message"]
        assert ("Warning", "BackOff" if reason == "CrashLoopBackOff" else "Failed", "kubelet") in events()


@pytest.mark.parametrize(
    ("play", "reason", "text"),
    [
        (
            ScriptedKubelet.unexpected_admission,
            "UnexpectedAdmissionError",
            "Requested: 1, Available: 0, which is unexpected",
        ),
        (
            ScriptedKubelet.topology_affinity,
            "TopologyAffinityError",
            "Resources cannot be allocated with Topology locality",
        ),
        (
            ScriptedKubelet.out_of,
            "OutOfnvidia.com/gpu",
            "Node didn't have enough resource: nvidia.com/gpu, requested: 1",
        ),
    ],
)
def test_a_kubelet_may_refuse_a_bound_pod(admin, namespace, kubelet, seen, events, play: Any, reason: str, text: str):
    with kubelet.claim(namespace):
        admin.create(pod(namespace))
        play(kubelet, kubelet.bound(namespace))
        status = seen()
        assert (status["phase"], status["reason"]) == ("Failed", reason)
        assert text in status["message"]
        assert "containerStatuses" not in status
        assert ("Warning", reason, "kubelet") in events()


def test_readiness_comes_and_goes(admin, namespace, kubelet, seen, events):
    def ready() -> list[str]:
        return [c["status"] for c in seen()["conditions"] if c["type"] == "Ready"]

    with kubelet.claim(namespace):
        admin.create(pod(namespace))
        trainer = kubelet.bound(namespace)
        kubelet.creating(trainer)
        assert (seen()["phase"], ready()) == ("Pending", ["False"])
        kubelet.running(trainer)
        assert (seen()["phase"], ready()) == ("Running", ["True"])
        kubelet.unready(trainer)
        assert (seen()["phase"], ready()) == ("Running", ["False"])
        assert ("Warning", "Unhealthy", "kubelet") in events()


# what the control plane makes of it


def test_a_job_replaces_an_evicted_pod_and_ends_with_a_crash(admin, namespace, kubelet):
    with kubelet.claim(namespace):
        admin.create(job(namespace))
        first = kubelet.bound(namespace)
        kubelet.evicted(kubelet.running(first))
        second = kubelet.bound(namespace, timeout_s=30)
        assert second["metadata"]["uid"] != first["metadata"]["uid"]
        kubelet.oom_killed(kubelet.running(second))
        failed = wait_until(lambda: job_condition(admin, namespace, "Failed"))
        assert failed["reason"] == "PodFailurePolicy"


def test_scripts_run_by_themselves(admin, namespace, kubelet, seen):
    with kubelet.claim(namespace, script=ends(0)):
        admin.create(job(namespace))
        wait_until(lambda: job_condition(admin, namespace, "Complete"))


def test_a_slow_start_is_slow(admin, namespace, kubelet, seen):
    with kubelet.claim(namespace, script=starts_slowly(1.0)):
        admin.create(pod(namespace))
        wait_until(lambda: seen().get("containerStatuses"))
        assert only_state(seen())["waiting"]["reason"] == "ContainerCreating"
        wait_until(lambda: seen()["phase"] == "Running")


def test_a_lost_node_is_tainted_and_comes_back(admin, kubelet, unique):
    name = f"own-{unique}"
    # Tainted: otherwise a pod of another test would be lost with it.
    own = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    hardware.add(admin, hardware.node(name, devices={"nvidia.com/gpu": 4}, taints=[own]))

    def ready() -> str:
        conditions = admin.get("v1/nodes", name)["status"].get("conditions", [])
        return next((c["status"] for c in conditions if c["type"] == "Ready"), "")

    def taints() -> set[str]:
        return {taint["key"] for taint in admin.get("v1/nodes", name)["spec"].get("taints", [])}

    try:
        wait_until(lambda: ready() == "True")
        kubelet.node_lost(name)
        wait_until(lambda: "node.kubernetes.io/unreachable" in taints())
        assert ready() == "Unknown"
        kubelet.node_back(name)
        wait_until(lambda: ready() == "True" and taints() == {own["key"]})
    finally:
        admin.delete("v1/nodes", name)
