"""Whether the GPU software of a node works, judged from its labels and the pods of NVIDIA's GPU Operator. Pure.

The operator labels a node with `nvidia.com/gpu.deploy.<part>`; "true" lets the DaemonSet of the part run there. It sets
this label for parts that its ClusterPolicy switches off, too, so that a missing pod is an error only if the part runs
on other nodes, or if it is the device plugin and the node has no allocatable devices.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from catalog.interconnect.node_state import driver_version

DEPLOY = "nvidia.com/gpu.deploy."
UPGRADE = "nvidia.com/gpu-driver-upgrade-state"
OPERANDS = "nvidia.com/gpu.deploy.operands"
MIG_STATE = "nvidia.com/mig.config.state"
DEVICE_PLUGIN = "device-plugin"
CRASHES = ("CrashLoopBackOff", "Error")
# Part → its name, and what does not work without it.
PARTS: Mapping[str, tuple[str, str]] = {
    "driver": ("Driver", "Without it no program can use a GPU of this node."),
    "container-toolkit": ("Container toolkit", "Without it new containers do not get GPUs."),
    DEVICE_PLUGIN: ("Device plugin", "Without it the node reports no GPUs to Kubernetes, and no new pod gets one."),
    "gpu-feature-discovery": (
        "GPU Feature Discovery",
        "Without it labels about the GPUs are missing or old, and a class may not find the node.",
    ),
    "dcgm-exporter": ("dcgm-exporter", "Without it use and faults of the GPUs are not measured. GPUs can be used."),
    "mig-manager": ("MIG manager", "Without it the MIG layout cannot be changed. GPUs can be used as they are."),
    "operator-validator": ("Operator validator", "Without it parts that wait for its checks do not start."),
}


@dataclass(frozen=True)
class StackPod:
    """`since`: of its condition Ready, None if not reported. `container`: the first that does not work; `reason`: why
    it is waiting, both "" if unknown.
    """

    part: str
    namespace: str
    name: str
    ready: bool
    since: datetime | None
    restarts: int
    container: str
    reason: str


@dataclass(frozen=True)
class StackLine:
    """`state`: ready, not_ready, crash_looping, paused, missing, off, unused, or of a label: changing, failed.
    `since` None: not recorded. `effect`, `remedy` and `command` are "" if nothing is wrong.
    """

    title: str
    state: str
    word: str
    since: datetime | None = None
    detail: str = ""
    effect: str = ""
    remedy: str = ""
    command: str = ""

    @property
    def is_wrong(self) -> bool:
        return self.state not in ("ready", "off", "unused")


@dataclass(frozen=True)
class NodeStack:
    """`has_operator`: labels of the GPU Operator are on the node. `driver`: version by its labels, "" if unknown."""

    has_operator: bool
    driver: str
    lines: tuple[StackLine, ...]

    @property
    def wrong(self) -> tuple[StackLine, ...]:
        return tuple(line for line in self.lines if line.is_wrong)


def is_nvidia(labels: Mapping[str, str], capacity: Mapping[str, int]) -> bool:
    return labels.get("nvidia.com/gpu.present") == "true" or any(name.startswith("nvidia.com/") for name in capacity)


def node_stack(
    node: str,
    labels: Mapping[str, str],
    pods: Collection[StackPod],
    *,
    in_cluster: Collection[str],
    has_devices: bool,
    label_times: Mapping[str, datetime | None],
) -> NodeStack:
    """`pods`: those of the node. `in_cluster`: parts of which any node has a pod. `has_devices`: some are allocatable.
    `label_times`: since when labels have their value at least.
    """
    lines: list[StackLine] = []
    by_part = {pod.part: pod for pod in sorted(pods, key=lambda pod: pod.ready, reverse=True)}
    if labels.get(OPERANDS) == "false":
        lines.append(StackLine("All parts", "off", "switched off", detail=f"The node label {OPERANDS} is 'false'."))
    for part in PARTS:
        deploy, pod = labels.get(DEPLOY + part, ""), by_part.get(part)
        if pod is not None or deploy:
            is_needed = part in in_cluster or (part == DEVICE_PLUGIN and not has_devices)
            lines.append(_part(node, part, deploy, pod, is_needed=is_needed))
    lines.extend(_upgrade(node, labels.get(UPGRADE, ""), label_times.get(UPGRADE)))
    lines.extend(_mig(labels.get(MIG_STATE, ""), label_times.get(MIG_STATE)))
    return NodeStack(
        has_operator=any(name.startswith(DEPLOY) for name in labels),
        driver=driver_version(labels),
        lines=tuple(lines),
    )


def _part(node: str, part: str, deploy: str, pod: StackPod | None, *, is_needed: bool) -> StackLine:
    title, effect = PARTS[part]
    if deploy.startswith("paused-for-"):
        return _paused(node, title, effect, part, deploy)
    if pod is not None:
        return _of_pod(title, effect, pod)
    if deploy != "true":
        return StackLine(title, "off", "not deployed here", detail=f"The node label {DEPLOY}{part} is {deploy!r}.")
    if not is_needed:
        return StackLine(
            title,
            "unused",
            "no pod on any node",
            detail="Often switched off in the ClusterPolicy, or installed on the host.",
        )
    return StackLine(
        title,
        "missing",
        "missing",
        detail="The node is labelled for it and has no pod of it.",
        effect=effect,
        remedy="Look at the DaemonSet and its events: often a taint that it does not tolerate, or no DaemonSet at all.",
        command="kubectl get daemonsets -A",
    )


def _paused(node: str, title: str, effect: str, part: str, deploy: str) -> StackLine:
    return StackLine(
        title,
        "paused",
        "paused",
        detail=f"The node label {DEPLOY}{part} is {deploy!r}.",
        effect=effect,
        remedy="Normal while the MIG layout or the driver changes. If nothing changes any more, the change did not "
        "end: read the log of the MIG manager or of the driver, then set the label to true.",
        command=f"kubectl label node {node} {DEPLOY}{part}=true --overwrite",
    )


def _of_pod(title: str, effect: str, pod: StackPod) -> StackLine:
    detail = f"Pod {pod.namespace}/{pod.name}"
    if pod.restarts:
        detail += f", {pod.restarts} restart{'' if pod.restarts == 1 else 's'}"
    if pod.ready:
        return StackLine(title, "ready", "ready", pod.since, f"{detail}.")
    if pod.container:
        detail += f"; container {pod.container}" + (f": {pod.reason}" if pod.reason else " is not ready")
    logs = f"kubectl logs -n {pod.namespace} {pod.name}" + (f" -c {pod.container}" if pod.container else "")
    is_crash = pod.reason in CRASHES
    return StackLine(
        title,
        "crash_looping" if is_crash else "not_ready",
        "crash looping" if is_crash else "not ready",
        pod.since,
        f"{detail}.",
        effect,
        "Read why it ended in the log of the last attempt."
        if is_crash
        else "Read its log. Parts wait for each other in this order: driver, container toolkit, all others.",
        f"{logs} --previous" if is_crash else logs,
    )


def _upgrade(node: str, state: str, since: datetime | None) -> Iterator[StackLine]:
    """None without the label: the operator does not upgrade drivers by itself, or has not looked at the node yet."""
    detail = f"The node label {UPGRADE} is {state!r}."
    if state == "upgrade-failed":
        yield StackLine(
            "Driver upgrade",
            "failed",
            "failed",
            since,
            detail,
            "The node may be cordoned, and its driver may not be loaded.",
            "Correct what the events GPUDriverUpgrade name, then let the operator try again.",
            f"kubectl label node {node} {UPGRADE}=upgrade-required --overwrite",
        )
    elif state and state != "upgrade-done":
        yield StackLine(
            "Driver upgrade",
            "changing",
            "not done",
            since,
            detail,
            "During the upgrade the node is cordoned and its GPU pods are deleted.",
            "It ends automatically. If it does not go on, another node may have to finish first, or a pod cannot be "
            "deleted.",
            "kubectl get events -n default --sort-by=.lastTimestamp",
        )


def _mig(state: str, since: datetime | None) -> Iterator[StackLine]:
    if state and state != "success":
        yield StackLine(
            "MIG layout",
            "failed" if state == "failed" else "changing",
            state,
            since,
            f"The node label {MIG_STATE} is {state!r}.",
            "The slices of this node may differ from the layout that was requested.",
            "Read the log of the MIG manager. A layout that failed: set the previous one again."
            if state == "failed"
            else "It ends automatically; it can fail while pods use the GPUs.",
            "kubectl logs -A -l app=nvidia-mig-manager --prefix",
        )
