"""What Kueue, the scheduler and the kubelet say, as one plain sentence with numbers. Pure: texts in, Explained out.

A text that is not known is shown as it is: a wrong explanation is worse than a raw one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Explained:
    """`reason` is a code for programs; `is_final`: waiting alone will never help."""

    reason: str
    sentence: str
    remedy: str = ""
    raw: str = ""
    raw_from: str = ""
    is_final: bool = False


_MORE_NEEDED = re.compile(r"insufficient unused quota for (\S+) in flavor (\S+), (\d+) more needed")
_OVER_MAXIMUM = re.compile(r"insufficient quota for (\S+) in flavor (\S+),.*maximum capacity \((\d+)\)")
_TOPOLOGY = re.compile(r"topology \"?[^\"]*\"? (?:doesn't allow to fit|allows to fit only (\d+) out of (\d+))")
_EXCLUDED = re.compile(r"resource \"([^\"]+)\": \d+")
_HELD = re.compile(r"untolerated taint \{gpu-portal/held[^}]*\} in flavor ([a-z0-9.-]+)")
_EXCEEDED = re.compile(r"exceeded quota: (\S+), requested: (.+?), used: (.+?), limited: (.+?)(?:$|\n)")
_NODES = re.compile(r"0/(\d+) nodes are available")
_INSUFFICIENT = re.compile(r"(\d+) Insufficient ([^,.\s]+(?:\.[^,.\s]+)*)")


def units_of(count: int, name: str) -> str:
    return f"{count} unit of {name}" if count == 1 else f"{count} units of {name}"


def pending(message: str, *, units: int, class_name: str, slug: str) -> Explained:
    """Kueue's condition QuotaReserved=False. It lists every flavor of the resource; those of other classes are ruled
    out by their taint, so that a sentence about quota or topology is about the class's own.
    """
    return replace(_pending(message, units, class_name, slug), raw=message, raw_from="Kueue")


def _pending(message: str, units: int, class_name: str, slug: str) -> Explained:
    if found := _OVER_MAXIMUM.search(message):
        return Explained(
            "exceeds_maximum",
            f"{units_of(units, class_name)} cannot start with what your team may use now: {found[3]} at most.",
            "It starts by itself once a grant allows it. Otherwise ask for fewer units, or request more quota.",
            is_final=True,
        )
    if any(flavor.startswith(f"{slug}-") for flavor in _HELD.findall(message)):
        return Explained(
            "class_held",
            f"{class_name} was held until just now; Kueue looks at it again in a moment.",
            "It starts by itself.",
        )
    if found := _TOPOLOGY.search(message):
        short = sorted(set(_EXCLUDED.findall(message[found.start() :])))
        lacking = f": too little {', '.join(short)} is left" if short else ""
        return Explained(
            "no_node_fits",
            f"No single node has {units_of(units, class_name)} free right now{lacking}.",
            "It starts when one node has enough; fewer units may start sooner.",
        )
    if found := _MORE_NEEDED.search(message):
        missing = int(found[3])
        return Explained(
            "waiting_for_quota",
            f"Waits for {units_of(missing, class_name)}: your team's quota is in use and nothing more can be borrowed.",
            "It starts when running work of your team ends; stopping one of yours helps at once.",
        )
    if "is stopped" in message or "is inactive" in message:
        return Explained("queue_held", "Your team's queue is held: nothing new starts.", "Ask the operators why.")
    if "doesn't exist" in message:
        return Explained(
            "queue_missing", "Your team's queue is not in the cluster yet.", "The portal makes it; wait a moment."
        )
    if "Pending the preemption" in message:
        return Explained("reclaiming", "Takes back units that another team had borrowed; it starts when they are free.")
    if not message:
        return Explained("queued", "Waits in your team's queue.")
    return Explained("queued", f"Waits in your team's queue. Kueue says: {message[:300]}")


def held(sentence: str, message: str) -> Explained:
    """`sentence`: since when, for what, until when. Whatever Kueue said last, nothing new starts while it is held."""
    return Explained(
        "class_held", sentence, "It starts by itself when the class is released.", message, "Kueue" if message else ""
    )


def preempted(message: str) -> Explained:
    return Explained(
        "preempted",
        "Interrupted: its units were needed by work with a better claim to them. It waits in your team's queue again.",
        "It starts again by itself. What it had not saved is lost.",
        raw=message,
        raw_from="Kueue",
    )


def refused_pod(message: str) -> Explained:
    """The event FailedCreate of a Job: its units are assigned, but the API server does not take its pod."""
    return replace(_refused_pod(message), raw=message, raw_from="the Job controller")


def _refused_pod(message: str) -> Explained:
    if found := _EXCEEDED.search(message):
        return Explained(
            "predecessor_ending",
            "Its units are assigned; the previous pod on them is still ending "
            f"(asked {found[2]}, used {found[3]}, limit {found[4]}).",
            "It starts by itself when that pod is gone, usually within a minute.",
        )
    if "violates PodSecurity" in message:
        return Explained(
            "pod_security", "The cluster's Pod Security rules refuse its pod.", "Tell the operators.", is_final=True
        )
    if "LimitRange" in message or "maximum" in message or "minimum" in message:
        return Explained(
            "limit_range",
            "Its cpu or memory is outside of what this namespace allows.",
            "Tell the operators.",
            is_final=True,
        )
    if "serviceaccount" in message:
        return Explained(
            "service_account",
            "The namespace lacks the service account for its pod.",
            "The portal repairs it; wait a moment.",
        )
    return Explained("pod_refused", "The cluster refuses its pod.", "The answer of the cluster says why.")


def unschedulable(message: str) -> Explained:
    """The condition PodScheduled=False of an admitted pod."""
    return replace(_unschedulable(message), raw=message, raw_from="the scheduler")


def _unschedulable(message: str) -> Explained:
    if "persistentvolumeclaim" in message or "PersistentVolumeClaims" in message or "persistent volume" in message:
        return Explained(
            "volume_unbound",
            "Waits for its volume: the storage has not provided it yet.",
            "If it stays, tell the operators.",
        )
    if "allocate all claims" in message or "resourceclaim" in message.lower() or "device class" in message:
        return Explained(
            "devices_unavailable",
            "No node can give it the devices it claims right now.",
            "It starts when devices are free.",
        )
    nodes = _NODES.search(message)
    short = _INSUFFICIENT.findall(message)
    if short:
        what = ", ".join(f"{resource} on {count}" for count, resource in short)
        total = f" of {nodes[1]} nodes" if nodes else ""
        return Explained(
            "no_node_fits",
            f"Admitted, but no node fits it: not enough {what}{total}.",
            "It starts when something ends on a fitting node.",
        )
    if nodes:
        return Explained(
            "no_node_fits", f"Admitted, but none of the {nodes[1]} nodes takes it.", "Tell the operators if it stays."
        )
    return Explained("not_placed", "Waits for the scheduler to choose a node.")


IMAGE_PROBLEMS = {
    "ErrImagePull": "image_not_found",
    "ImagePullBackOff": "image_not_found",
    "InvalidImageName": "bad_image_name",
    "ErrImageNeverPull": "image_not_found",
    "ImageInspectError": "image_broken",
    "RegistryUnavailable": "registry_unavailable",
}


def waiting_container(reason: str, message: str, *, image: str) -> Explained | None:
    """Why a container that has its node does not run. None: the ordinary way of things."""
    found = _waiting_container(reason, message, image)
    raw = f"{reason}: {message}" if message else reason
    return replace(found, raw=raw, raw_from="the kubelet") if found else None


def _waiting_container(reason: str, message: str, image: str) -> Explained | None:
    if reason in IMAGE_PROBLEMS:
        return Explained(
            IMAGE_PROBLEMS[reason],
            f"The image {image} could not be pulled; the node tries again.",
            "Check its name and tag, and that the cluster may pull it; then stop this run and start another.",
        )
    if reason in ("CreateContainerConfigError", "CreateContainerError", "RunContainerError"):
        if "secret" in message and "not found" in message:
            return None  # the Secret follows its Job within moments
        return Explained(
            "container_config", "The node could not set the container up.", "Tell the operators if it stays."
        )
    return None


def ended_badly(*, pod_reason: str, pod_message: str, state_reason: str, exit_code: int | None) -> Explained:
    """A pod whose phase is Failed."""
    raw = f"{pod_reason}: {pod_message}" if pod_reason else state_reason
    return replace(_ended_badly(pod_reason, state_reason, exit_code), raw=raw, raw_from="the kubelet")


def _ended_badly(pod_reason: str, state_reason: str, exit_code: int | None) -> Explained:
    if state_reason == "OOMKilled":
        return Explained(
            "out_of_memory",
            "It used more of the host's memory than it may (this is not the GPU's memory) and was ended.",
            "Use less, or take a class with more memory per unit.",
        )
    if pod_reason in ("UnexpectedAdmissionError", "TopologyAffinityError") or pod_reason.startswith("OutOf"):
        return Explained(
            "node_refused", f"The node refused it after it was assigned ({pod_reason}).", "Start it again."
        )
    if pod_reason in ("Evicted", "NodeShutdown", "Terminated", "NodeAffinity", "NodeLost"):
        return Explained("evicted", f"The node ended it ({pod_reason}).", "Start it again.")
    if state_reason == "StartError" or exit_code == 127:
        return Explained(
            "command_not_found", "Its command could not be started in this image.", "Check the command and the image."
        )
    if exit_code is not None:
        return Explained("crashed", f"It ended with exit code {exit_code}.", "Its log says more.")
    return Explained("failed", "It failed.", "Its log may say more.")
