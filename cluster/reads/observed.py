"""Objects as they were seen in the cluster: frozen, typed values that queries make from mirror rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cluster.manifests.node_removal.cordons import Cordon


@dataclass(frozen=True, slots=True)
class AsOf:
    """How current the mirror is. `at`: everything that happened before it is shown; None when nothing is known.

    `is_current`: the watcher lives and every watch delivered something within its limit; `problem` describes the
    failure. `silent`: since when a component of the cluster (see `silence.py`) has not renewed its Lease.
    """

    at: datetime | None
    is_current: bool
    problem: str = ""
    silent: Mapping[str, datetime] = field(default_factory=dict)

    @property
    def is_known(self) -> bool:
        """True if absence has a meaning: everything was listed since the mirror was last emptied."""
        return self.at is not None


@dataclass(frozen=True, slots=True)
class Condition:
    """`about`: name of another workload, where `message` was written for that one and applies here too."""

    type: str
    status: str
    reason: str
    message: str
    since: datetime | None
    about: str = ""

    @property
    def is_true(self) -> bool:
        return self.status == "True"


class WithConditions:
    """Looks up conditions by their type."""

    __slots__ = ()
    conditions: tuple[Condition, ...]

    def condition(self, type: str) -> Condition | None:
        return next((condition for condition in self.conditions if condition.type == type), None)

    def is_true(self, type: str) -> bool:
        found = self.condition(type)
        return found is not None and found.is_true


@dataclass(frozen=True, slots=True)
class Taint:
    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class LabelWriter:
    """The field manager of a label. `at`: its value is at least as old; None if the cluster does not report it."""

    manager: str
    at: datetime | None


@dataclass(frozen=True, slots=True)
class Node:
    """`schedulable`: not cordoned; `capacity` and `allocatable`: cpu in millicores, memory in bytes.

    `writers`: of the labels that decide the MIG layout and sharing of its GPUs, and of the driver upgrade's state.
    """

    name: str
    uid: str
    created_at: datetime
    schedulable: bool
    ready: bool
    ready_since: datetime | None
    ready_reason: str
    ready_message: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    capacity: Mapping[str, int]
    allocatable: Mapping[str, int]
    pressure: tuple[str, ...]
    kubelet: str
    writers: Mapping[str, LabelWriter] = field(default_factory=dict)
    cordon: Cordon | None = None


@dataclass(frozen=True, slots=True)
class Container:
    """`state`: waiting, running, terminated or empty (not reported yet). `since`: running or ran since."""

    name: str
    ready: bool
    restarts: int
    state: str
    reason: str
    message: str
    since: datetime | None
    exit_code: int | None
    ended_at: datetime | None
    last_reason: str
    last_exit_code: int | None


@dataclass(frozen=True, slots=True)
class Pod(WithConditions):
    """A pod. Pods with our owner label have all fields; others only have placement and requests (`owner` is empty)."""

    namespace: str
    name: str
    uid: str
    owner: str
    created_at: datetime
    deleting_since: datetime | None
    phase: str
    node: str
    run: str
    gpu_class: str
    requests: Mapping[str, int]
    labels: Mapping[str, str] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    reason: str = ""
    message: str = ""
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    ip: str = ""
    priority: int = 0
    gates: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    job_uid: str = ""
    started_at: datetime | None = None

    @property
    def is_over(self) -> bool:
        return self.phase in ("Succeeded", "Failed")

    @property
    def is_on_a_node(self) -> bool:
        """The pod holds its units on the node, also while it terminates."""
        return bool(self.node) and not self.is_over

    @property
    def is_ready(self) -> bool:
        return self.is_true("Ready") and self.deleting_since is None

    def container(self, name: str) -> Container | None:
        return next((container for container in self.containers if container.name == name), None)


@dataclass(frozen=True, slots=True)
class RemovedPod:
    """A pod that the cluster removed and that is gone, as it was last seen. `target`: its condition DisruptionTarget;
    `ran_since` None: it never ran.
    """

    uid: str
    node: str
    phase: str
    reason: str
    message: str
    target: Condition
    ran_since: datetime | None


@dataclass(frozen=True, slots=True)
class Job(WithConditions):
    namespace: str
    name: str
    uid: str
    owner: str
    created_at: datetime
    deleting_since: datetime | None
    run: str
    labels: Mapping[str, str]
    conditions: tuple[Condition, ...]
    suspend: bool
    parallelism: int
    completions: int | None
    active: int
    ready: int
    succeeded: int
    failed: int
    terminating: int
    started_at: datetime | None
    completed_at: datetime | None


@dataclass(frozen=True, slots=True)
class KueueWorkload(WithConditions):
    """A Kueue Workload; `owner` is that of its Job. `flavors`: resource → flavor, once quota is reserved.

    `inactive_by`: the field manager that set it to inactive, "" while it is active or if that is unknown.
    """

    namespace: str
    name: str
    uid: str
    owner: str
    created_at: datetime
    deleting_since: datetime | None
    queue: str
    job_uid: str
    conditions: tuple[Condition, ...]
    active: bool
    priority: int
    priority_class: str
    cluster_queue: str
    flavors: Mapping[str, str]
    usage: Mapping[str, int]
    pods: int
    checks: Mapping[str, str]
    requeue_count: int
    requeue_at: datetime | None
    evictions: Mapping[str, int]
    preemptions: int
    inactive_by: str = ""
    inactive_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class GenericObject:
    """Any other kind; the keys of `record` are documented at its reader in `cluster/mirror/records/namespaces.py`."""

    kind: str
    namespace: str
    name: str
    uid: str
    owner: str
    created_at: datetime
    deleting_since: datetime | None
    record: Mapping[str, Any]

    def condition(self, type: str) -> Condition | None:
        return next((c for c in conditions(self.record) if c.type == type), None)


@dataclass(frozen=True, slots=True)
class WarningEvent:
    namespace: str
    object_kind: str
    object_name: str
    object_uid: str
    reason: str
    message: str
    count: int
    first_at: datetime
    last_at: datetime
    source: str


def conditions(record: Mapping[str, Any]) -> tuple[Condition, ...]:
    return tuple(
        Condition(entry["type"], entry["status"], entry["reason"], entry["message"], parse_time(entry["since"]))
        for entry in record.get("conditions") or ()
    )


def containers(entries: list[dict[str, Any]]) -> tuple[Container, ...]:
    return tuple(
        Container(**{**entry, "since": parse_time(entry["since"]), "ended_at": parse_time(entry["ended_at"])})
        for entry in entries
    )


def parse_time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
