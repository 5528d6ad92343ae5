"""Pods, Jobs and Kueue Workloads as the mirror stores them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from cluster.reads.observed import Condition, Container, Job, KueueWorkload, Pod, WarningEvent
from workloads.status.desired_run import DesiredRun

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)

AGO = NOW - timedelta(minutes=2)

JUST = NOW - timedelta(seconds=3)

WISH = DesiredRun(
    kind="notebook",
    class_name="A100",
    class_slug="a100",
    units=2,
    image="minimal:1",
    number=1,
    requested_at=AGO,
    sent="applied",
    sent_at=AGO,
)

NEEDED = (
    "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in flavor a100-1, "
    "2 more needed"
)

OVER = (
    "insufficient quota for nvidia.com/gpu in flavor a100-1, previously considered podsets requests (0) + "
    "current podset request (2) > maximum capacity (1)"
)

EXCEEDED = (
    'pods "one-1-x" is forbidden: exceeded quota: gpu-portal, requested: requests.nvidia.com/gpu=2, '
    "used: requests.nvidia.com/gpu=4, limited: requests.nvidia.com/gpu=4"
)

ABOVE = (
    "resources didn't satisfy LimitRange constraints: podSets[0].template.spec.containers[0]: Invalid value: "
    '["cpu","memory"]: requests must not be above the limitRange max'
)


def condition(kind: str, *, true: bool = True, reason: str = "", message: str = "", since: datetime = AGO) -> Condition:
    return Condition(kind, "True" if true else "False", reason, message, since)


def job(
    *conditions: Condition, suspend: bool = False, created_at: datetime = AGO, started_at: datetime | None = None
) -> Job:
    return Job(
        namespace="team-a", name="one-1", uid="job", owner="workloads.workload.1", created_at=created_at,
        deleting_since=None, run="one-1", labels={}, conditions=conditions, suspend=suspend, parallelism=1,
        completions=1, active=1, ready=0, succeeded=0, failed=0, terminating=0, started_at=started_at,
        completed_at=None,
    )  # fmt: skip


def queue(*conditions: Condition, **changes: Any) -> KueueWorkload:
    values: dict[str, Any] = {
        "namespace": "team-a", "name": "job-one", "uid": "wl", "owner": "workloads.workload.1", "created_at": AGO,
        "deleting_since": None, "queue": "gpu-portal", "job_uid": "job", "conditions": conditions, "active": True,
        "priority": 500, "priority_class": "interactive", "cluster_queue": "", "flavors": {}, "usage": {}, "pods": 0,
        "checks": {}, "requeue_count": 0, "requeue_at": None, "evictions": {}, "preemptions": 0,
    }  # fmt: skip
    return KueueWorkload(**{**values, **changes})


def pod(*conditions: Condition, state: str = "", **changes: Any) -> Pod:
    container = Container(
        "notebook", False, 0, state, changes.pop("reason", ""), changes.pop("message", ""), changes.pop("since", AGO),
        changes.pop("exit_code", None), None, "", None,
    )  # fmt: skip
    values: dict[str, Any] = {
        "namespace": "team-a", "name": "one-1-abc", "uid": "pod", "owner": "workloads.workload.1", "created_at": AGO,
        "deleting_since": None, "phase": "Pending", "node": "", "run": "one-1", "gpu_class": "a100", "requests": {},
        "conditions": conditions, "containers": (container,) if state else (),
        "reason": changes.pop("pod_reason", ""), "message": changes.pop("pod_message", ""),
    }  # fmt: skip
    return Pod(**{**values, **changes})


def warning(kind: str, reason: str, message: str, *, last_at: datetime = NOW) -> WarningEvent:
    return WarningEvent("team-a", kind, "one-1", "job", reason, message, 1, AGO, last_at, "")


def pending(message: str) -> KueueWorkload:
    return queue(condition("QuotaReserved", true=False, reason="Pending", message=message))


ADMITTED = queue(condition("QuotaReserved"), condition("Admitted"))


BOUND = condition("PodScheduled")


SUSPENDED = job(suspend=True)


READY = pod(BOUND, condition("Ready"), state="running", node="a100-1", phase="Running")


UNSCHEDULABLE = condition(
    "PodScheduled",
    true=False,
    reason="Unschedulable",
    message="0/8 nodes are available: 3 Insufficient nvidia.com/gpu, 5 node(s) had untolerated taint(s).",
)


UNBOUND = replace(UNSCHEDULABLE, message="0/8 nodes are available: pod has unbound immediate PersistentVolumeClaims.")
