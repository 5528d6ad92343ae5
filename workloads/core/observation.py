"""What was seen of one run in the cluster: its Job, its Kueue Workload, its pods and the warnings about them. Pure.

Without a mirror the observation is None, never an empty Observation: "does not exist" and "not observed" differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from cluster.manifests.node_removal.notices import RemovalNotice
from cluster.reads.autoscaler.pools import Autoscaler
from cluster.reads.observed import Container, Job, KueueWorkload, Pod, RemovedPod, WarningEvent, WithConditions
from cluster.reads.volume_place import EVERYWHERE, VolumePlace
from workloads.core.class_nodes import ClassNodes, SizedDevices


@dataclass(frozen=True)
class NodeTrouble:
    """The node of the run's pod is not ready. `reason` NodeStatusUnknown: its kubelet does not report."""

    name: str
    since: datetime | None
    reason: str
    message: str

    @property
    def is_silent(self) -> bool:
        return self.reason == "NodeStatusUnknown"


@dataclass(frozen=True)
class LeavingNode:
    """The node of a pod of the run is being removed."""

    name: str
    uid: str
    notice: RemovalNotice

    @property
    def sentence(self) -> str:
        return f"Node {self.name} is being removed: {self.notice.now}."


@dataclass(frozen=True)
class ImagePresence:
    """Ready nodes of the class that have the image; `size_mib` as they report it, None if none has it.

    Nodes report only some of their images: an image that is not reported may be present.
    """

    size_mib: int | None = None
    nodes: frozenset[str] = frozenset()


# Phases of a claim with which no pod starts, in words.
UNUSABLE_PHASES = {
    "missing": "does not exist in the cluster",
    "terminating": "is being deleted in the cluster",
    "lost": "has lost its storage and all its data",
}


@dataclass(frozen=True)
class ClaimState:
    """The volume of a run: its claim, its storage class, and the node that it was created for, with that node's zone.
    `problem`: the last warning about it, `refusal`: why the API server does not accept it, "" if there is none.
    `phase`: bound, pending, lost, terminating, missing, or "" if unknown; `place`: the nodes that can mount it.
    `is_out_of_reach`: no node of the run's class is one of them; only for a class whose nodes are not observed.
    """

    name: str
    storage_class: str = ""
    node: str = ""
    zone: str = ""
    problem: str = ""
    refusal: str = ""
    phase: str = ""
    place: VolumePlace = EVERYWHERE
    is_out_of_reach: bool = False

    @property
    def is_in_the_making(self) -> bool:
        """The scheduler has chosen a node for its first pod, and the storage has not provisioned it there yet."""
        return self.phase == "pending" and bool(self.node)


@dataclass(frozen=True)
class LocalQueueState:
    """The team's queue in the cluster. `nominal`: units of its own quota by class slug; `why` it admits nothing, in
    Kueue's words, "" if it does; `is_stopped`: because it is held. `limits` and `minimums`: the most and the least that
    one container of its namespace may request by resource, if Kueue reports that a pod requests more or less.
    """

    nominal: Mapping[str, int]
    why: str = ""
    is_stopped: bool = False
    limits: Mapping[str, str] = field(default_factory=dict)
    minimums: Mapping[str, str] = field(default_factory=dict)

    def is_for_borrowed(self, slug: str, units: int) -> bool:
        """The team's own quota is too small even if all of it is free."""
        return units > self.nominal.get(slug, units)


@dataclass(frozen=True)
class Observation:
    """`pods` oldest first, `warnings` newest first; `position`: 0 is the first in the team's queue, None unknown.

    `lost`: the problem of the node that its pod is on; `leaving`: a node of its pods that is being removed; `image` and
    `nodes` None: not observed. `holding`: everything that uses units in the team's queue, including this run; `line`:
    positions of all queued runs by Job uid, None: not observed.
    """

    job: Job | None = None
    queue: KueueWorkload | None = None
    pods: tuple[Pod, ...] = ()
    warnings: tuple[WarningEvent, ...] = ()
    position: int | None = None
    lost: NodeTrouble | None = None
    leaving: LeavingNode | None = None
    image: ImagePresence | None = None
    nodes: ClassNodes | None = None
    # Read only for a pod that waits for devices of a memory size.
    devices: SizedDevices | None = None
    # Read only for a run that waits in the queue, and for a pod that waits for its volume.
    claim: ClaimState | None = None
    # None: no run of the team is queued, or not observed.
    at: LocalQueueState | None = None
    holding: tuple[KueueWorkload, ...] = ()
    line: Mapping[str, int] | None = None
    # Since when its namespace is being deleted; read only if a run has a Job and no pod.
    namespace_ends: datetime | None = None
    # Errors of GPUs that the nodes of its failed pods reported, latest first.
    gpu_errors: tuple[WarningEvent, ...] = ()
    # Read only for a pod of an autoscaled class that waits for a node; None: not known.
    autoscaler: Autoscaler | None = None
    # Read only by the worker: pods that the cluster removed and that are gone.
    removed: tuple[RemovedPod, ...] = ()

    @property
    def pod(self) -> Pod | None:
        """Returns the newest pod that is not terminating, otherwise the newest."""
        staying = [pod for pod in self.pods if pod.deleting_since is None]
        found = staying or self.pods
        return found[-1] if found else None

    def warning(self, *reasons: str, kind: str) -> WarningEvent | None:
        return next((w for w in self.warnings if w.reason in reasons and w.object_kind == kind), None)


def true_since(thing: WithConditions | None, condition: str) -> datetime | None:
    """Returns since when the condition is true; None if it is not true or does not exist."""
    found = thing.condition(condition) if thing is not None else None
    return found.since if found is not None and found.is_true else None


def main_container(pod: Pod) -> Container | None:
    """Returns the one main container of a run's pod; None until the kubelet has reported."""
    return pod.containers[0] if pod.containers else None


def unfinished_init_container(pod: Pod) -> Container | None:
    """Returns the init container that has not succeeded yet: it clones the repository before the main container
    runs.
    """
    return next((one for one in pod.init_containers if one.exit_code != 0), None)


def current_container(pod: Pod) -> Container | None:
    """Returns the first container that is not done: its state is the state of the pod."""
    return unfinished_init_container(pod) or main_container(pod)


def running_since(pod: Pod | None) -> datetime | None:
    found = main_container(pod) if pod is not None else None
    return found.since if found is not None else None


def log_container(pod: Pod) -> str:
    """Returns the container that writes the log, or wrote last: the clone of the repository while it runs or if it
    failed, otherwise the main container; "" while none has started.
    """
    before = unfinished_init_container(pod)
    if before is not None and before.state in ("running", "terminated"):
        return before.name
    main = main_container(pod)
    return main.name if main is not None and main.state in ("running", "terminated") else ""


def job_has_failed(job: Job) -> bool:
    """While a Job is suspended, the Job controller already decides that it failed, but reports Failed only when the
    queue starts the Job again. It would not run any more then.
    """
    return job.is_true("Failed") or (job.suspend and job.is_true("FailureTarget"))
