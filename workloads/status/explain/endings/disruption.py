"""Why the cluster or a node ended or refused a pod: evicted, drained, preempted, lost, not admitted. Pure."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from cluster.manifests.run_spec import HOME
from workloads.status.explain.devices import explain_device_fault
from workloads.status.explain.endings.pod_termination import IF_AGAIN, NOT_SAVED, PodTermination
from workloads.status.explain.quantities import figures, number, quantity_text, resource_name, sized
from workloads.status.explain.types import Explanation, Who, who_acts

# For a reason of the kubelet, or of a disruption, that is not known here.
UNKNOWN = frozenset({"node_refused", "disrupted"})
_INSUFFICIENT = re.compile(r"resource: (\S+), requested: (\d+), used: (\d+), capacity: (\d+)")
_DEVICES = re.compile(r"unavailable for (\S+)\. Requested: (\d+), Available: (\d+)")
_PRESSURE = re.compile(r"The node had condition: \[([A-Za-z, ]+)\]")
_LOW = re.compile(r"low on resource: ([a-zA-Z-]+)\.(?:.*?available: ([^\s,]+?)\.(?:\s|$))?")
_USING = re.compile(r"was using ([^\s,]+), request is ([^\s,]+), has larger")
_TOO_MUCH = re.compile(r"Usage of EmptyDir volume \"([^\"]+)\" exceeds the limit \"([^\"]+)\"")
_OWN_LIMIT = re.compile(r"(?:total limit of containers|local ephemeral storage limit) \"?([0-9.]+[A-Za-z]*)")


def ended_by_cluster(ended: PodTermination) -> Explanation:
    if ended.pod_reason == "UnexpectedAdmissionError" and (
        found := explain_device_fault(ended.pod_message, ended.node)
    ):
        # Another pod follows, maybe on another node.
        remedy = IF_AGAIN if who_acts(found.reason) is Who.OPERATORS else found.remedy
        return replace(found, remedy=remedy, facts=({"node": ended.node} if ended.node else {}) | dict(found.facts))
    reason, sentence, remedy, actions = _disruption(ended)
    facts = ({"node": ended.node} if ended.node else {}) | _numbers(ended.pod_message)
    is_known = reason not in UNKNOWN
    return Explanation(reason, sentence, remedy, actions=actions, facts=facts, is_known=is_known)


def _numbers(text: str) -> dict[str, Any]:
    """Why the kubelet rejected or evicted the pod. A volume of the pod is named as it is there."""
    if found := _TOO_MUCH.search(text):
        return {"resource": found[1]}
    if found := _DEVICES.search(text):
        return {"resource": found[1], "asked": int(found[2]), "available": int(found[3])}
    if found := _INSUFFICIENT.search(text):
        return figures(found[1], **dict(zip(("asked", "used", "limit"), _quantities(found), strict=True)))
    return {}


def _quantities(found: re.Match[str]) -> list[str]:
    """Reads the kubelet's numbers: cpu in millicores, memory in bytes."""
    return [f"{part}m" if found[1] == "cpu" else part for part in found.group(2, 3, 4)]


def _disruption(ended: PodTermination) -> tuple[str, str, str, tuple[str, ...]]:
    node, why, text = f"Node {ended.node}", ended.pod_reason, ended.pod_message
    stop = ("stop",)
    if why == "UnexpectedAdmissionError":
        found = _DEVICES.search(text)
        said = f"{found[1]}: {found[2]} requested, {found[3]} available" if found else "its devices are not available"
        return "device_unavailable", f"{node} rejected the pod: {said}.", IF_AGAIN, stop
    if why == "TopologyAffinityError":
        said = f"{node} rejected the pod: its GPUs and cores are not available on the same NUMA node."
        return "topology_refused", said, "Fewer units or cores may fit.", ("stop", "change")
    if why.startswith("OutOf"):
        return "node_full", f"{node} rejected the pod: {_full(why, text)}.", IF_AGAIN, stop
    if why == "NodeAffinity":
        return "node_changed", f"{node} rejected the pod: the labels of the node have changed.", IF_AGAIN, stop
    if why == "Evicted":
        return _evicted(ended.node, text)
    if why in ("Terminated", "NodeShutdown", "Shutdown") or "node shutdown" in ended.disruption_message:
        return "node_shutdown", f"{node} was shut down.", NOT_SAVED, stop
    if ended.disruption == "DeletionByTaintManager":
        # Kubernetes taints nodes that are not ready, and operators taint others.
        said = (
            f"A taint (NoExecute) of node {ended.node} removed it: the node was not ready, or an operator cleared it."
        )
        return "drained", said, NOT_SAVED, stop
    if why == "NodeLost" or ended.disruption == "DeletionByPodGC":
        is_gone = "no longer exists" in ended.disruption_message
        said = f"{node} {'is no longer in the cluster' if is_gone else 'no longer responds'}."
        return "node_lost", said, NOT_SAVED, stop
    if ended.disruption == "EvictionByEvictionAPI":
        return "drained", f"It was evicted from node {ended.node}, as when a node is drained.", NOT_SAVED, stop
    if ended.disruption == "PreemptionByScheduler" or why == "Preempting":
        said = f"A pod with a higher priority preempted it on node {ended.node}."
        return "preempted_on_node", said, NOT_SAVED, stop
    if why:
        return "node_refused", f"{node} rejected the pod ({why}).", IF_AGAIN, stop
    return "disrupted", f"The pod was removed from node {ended.node} ({ended.disruption}).", NOT_SAVED, stop


def _full(why: str, text: str) -> str:
    found = _INSUFFICIENT.search(text)
    if found is None:
        return f"too little {why.removeprefix('OutOf')} free"
    name = found[1]
    asked, used, capacity = _quantities(found)
    taken = f"{number(name, used)} of {number(name, capacity)} used"
    return f"{resource_name(name)}: {sized(name, asked)} requested, {taken}"


# What a node ran low on, as a kubelet names it. The last two are counts.
_LOW_ON = {
    "ephemeral-storage": "disk space",
    "nodefs": "disk space",
    "imagefs": "disk space",
    "inodes": "files that its disk can hold (inodes)",
    "pids": "process ids",
}
_COUNTED = frozenset({"inodes", "pids"})
# Where the volumes of our pods are mounted.
SHARED_MEMORY = "shared-memory"
_PLACES = {SHARED_MEMORY: "/dev/shm", "home": HOME}


def _evicted(node: str, text: str) -> tuple[str, str, str, tuple[str, ...]]:
    if found := _TOO_MUCH.search(text):
        place = _PLACES.get(found[1], found[1])
        said = f"It wrote more than {quantity_text(found[2])} to {place}, and node {node} evicted it."
        return "too_many_files", said, "Write less there, or request more.", ("stop", "change")
    if found := _OWN_LIMIT.search(text):
        said = f"It wrote more than {quantity_text(found[1])} of files, and node {node} evicted it."
        return "too_many_files", said, "Write less, or write to a volume.", ("stop", "change")
    if found := _PRESSURE.search(text):
        said = f"Node {node} rejected the pod: it reports {found[1].replace(', ', ' and ')}."
        return "node_pressure", said, IF_AGAIN, ("stop",)
    found = _LOW.search(text)
    if found is None:
        return "evicted", f"Node {node} evicted it and reported no reason.", NOT_SAVED, ("stop",)
    what = _LOW_ON.get(found[1], found[1])
    amount = found[2] and (found[2] if found[1] in _COUNTED else quantity_text(found[2]))
    left = f" ({amount} left)" if amount else ""
    said = f"Node {node} ran low on {what}{left} and evicted it"
    if using := _USING.search(text):
        said += f": it used {quantity_text(using[1])}, {quantity_text(using[2])} were requested"
    return "evicted", f"{said}.", NOT_SAVED, ("stop",)
