"""Writes the pod of a case as a kubelet would: status and events of a real pod on a simulated node."""

from __future__ import annotations

from cluster.manifests.metadata import RUN_LABEL
from cluster.manifests.run import WORKLOAD_LABEL
from cluster.reads.observed import Container
from devcluster.client.kube import Api
from devcluster.client.types import Json
from devcluster.kubelet import pod_status
from devcluster.kubelet.scripted import ScriptedKubelet
from workloads.core.observation import Observation
from workloads.models import Run


def replay(kubelet: ScriptedKubelet, pod: Json, seen: Observation) -> None:
    made = seen.pods[-1]
    for one in seen.warnings:
        kubelet.event(pod, one.reason, one.message, kind="Warning", container=False)
    status: Json = {"phase": made.phase, "startTime": pod_status.now()}
    if made.reason:
        status |= {"reason": made.reason, "message": made.message}
    if (target := made.condition("DisruptionTarget")) is not None:
        status["conditions"] = [pod_status.disruption(target.reason, target.message)]
    for key, spec, containers in (
        ("initContainerStatuses", pod["spec"].get("initContainers", ()), made.init_containers),
        ("containerStatuses", pod["spec"]["containers"], made.containers),
    ):
        if containers:
            status[key] = [_status(told, one) for told, one in zip(spec, containers, strict=True)]
    pod_status.report(kubelet.api, pod, status)


def _status(spec: Json, one: Container) -> Json:
    state = {
        "waiting": pod_status.waiting(one.reason, one.message),
        "terminated": pod_status.terminated(one.exit_code or 0, reason=one.reason, message=one.message),
    }[one.state]
    return {
        "name": spec["name"], "image": spec["image"], "imageID": "", "ready": False, "restartCount": 0, "state": state,
        "lastState": {},
    }  # fmt: skip


def runs_latest(kubelet: ScriptedKubelet, namespace: str, names: set[str]) -> bool:
    """Starts the pod of the latest run of each workload when it is on a node. Returns whether all are running."""
    latest = dict(
        Run.objects.filter(workload__name__in=names).order_by("number").values_list("workload__name", "number")
    )
    begun = set()
    for pod in kubelet.api.list("v1/pods", namespace=namespace):
        labels = pod["metadata"]["labels"]
        name = labels[WORKLOAD_LABEL]
        is_latest = labels[RUN_LABEL] == f"{name}-{latest.get(name)}"
        if not is_latest or "deletionTimestamp" in pod["metadata"] or not pod["spec"].get("nodeName"):
            continue
        if pod["status"]["phase"] == "Pending":
            kubelet.running(pod)
        elif pod["status"]["phase"] == "Running":
            begun.add(name)
    return begun == names


def pending(admin: Api, namespace: str) -> list[Json]:
    """Pods on a node that have not started and are not being deleted."""
    return [
        pod
        for pod in admin.list("v1/pods", namespace=namespace)
        if pod["spec"].get("nodeName")
        and pod["status"]["phase"] == "Pending"
        and "deletionTimestamp" not in pod["metadata"]
    ]
