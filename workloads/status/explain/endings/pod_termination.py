"""What the cluster reports about the end of a pod, and words that several explanations share. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cluster.reads.observed import Container, Pod
from workloads.core.observation import main_container
from workloads.status.explain.quantities import GIB

AGAIN = "Kubernetes restarts it automatically."
IF_AGAIN = "If it happens again, contact an operator."
NOT_SAVED = "Unsaved work is lost."
LOG = "See the log."
ENDED = ("stop", "log", "change")
CHANGE = ("stop", "change", "log")
# A container that has not started has no log.
NEVER_RAN = ("stop", "change")
# Reason, sentence, remedy, actions.
Told = tuple[str, str, str, tuple[str, ...]]


@dataclass(frozen=True)
class PodTermination:
    """A pod that failed or is being removed. `disruption`: reason of its condition DisruptionTarget, "" if none;
    `container`: which container ended; `message`: the last lines of that container; `memory`: bytes that the pod may
    use; `resources`: names of what it requests; `has_devices`: a GPU is among it.
    """

    node: str
    pod_reason: str = ""
    pod_message: str = ""
    disruption: str = ""
    disruption_message: str = ""
    container: str = ""
    state_reason: str = ""
    message: str = ""
    exit_code: int | None = None
    memory: int | None = None
    resources: tuple[str, ...] = ()
    has_devices: bool = True

    @property
    def comes_back(self) -> bool:
        """The Job starts another pod after a disruption or a refusal by the kubelet, but not after a crash."""
        return bool(self.disruption) or (self.exit_code is None and bool(self.pod_reason))


def pod_termination(pod: Pod) -> PodTermination:
    """Returns what the cluster reports about the end of the pod."""
    last = last_container(pod)
    target = pod.condition("DisruptionTarget")
    is_disrupted = target is not None and target.is_true
    return PodTermination(
        node=pod.node,
        pod_reason=pod.reason,
        pod_message=pod.message,
        disruption=target.reason if target and is_disrupted else "",
        disruption_message=target.message if target and is_disrupted else "",
        container=last.name if last else "",
        state_reason=last.reason if last else "",
        message=last.message if last else "",
        exit_code=last.exit_code if last else None,
        memory=pod.requests.get("memory"),
        resources=tuple(pod.requests),
        # Devices of DRA are claimed; other resources than those of Kubernetes have a domain.
        has_devices=bool(pod.claims) or any("/" in name for name in pod.requests),
    )


def last_container(pod: Pod) -> Container | None:
    """Returns the container that ended the pod: a failed init container, otherwise the main one."""
    failed = next((one for one in pod.init_containers if one.exit_code), None)
    return failed or main_container(pod)


def limit(ended: PodTermination) -> str:
    size = f" of {round(ended.memory / GIB, 1):g} GiB" if ended.memory else ""
    return f"its host memory limit{size}"


def with_memory(facts: Mapping[str, Any], ended: PodTermination) -> dict[str, Any]:
    if not ended.memory:
        return dict(facts)
    whole = ended.memory / GIB
    return {**facts, "memory_gib": int(whole) if whole.is_integer() else round(whole, 1)}
