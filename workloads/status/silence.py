"""A component of the cluster that does not respond: what waits for it does not continue, whatever was reported. Pure.

Whether one is silent comes from its Lease. A scheduler without a Lease counts as silent if a pod waits for its first
answer for too long.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from cluster.mirror.silence import CONTROLLERS, QUEUE_SYSTEM, SCHEDULER
from workloads.core.observation import Observation
from workloads.status.explain import queue_holds
from workloads.status.explain.scheduling import KUEUE_GATES
from workloads.status.types import Phase, Status

# The scheduler answers within a second, in a cluster with thousands of pending pods within half a minute.
FIRST_ANSWER = timedelta(seconds=60)
# A kubelet reports a new pod within seconds, before it pulls an image or mounts a volume.
FIRST_REPORT = timedelta(minutes=3)
_WAITING = (Phase.QUEUED, Phase.BLOCKED, Phase.PREPARING)


def with_silence(told: Status, seen: Observation, silent: Mapping[str, datetime], now: datetime) -> Status:
    """`told`: the status as if every component worked."""
    if (silent_node := _kubelet(told, seen, now)) is not None:
        return silent_node
    component = _awaited(told, seen)
    at = silent.get(component)
    is_unanswered = told.reason == "placing" and not (seen.claim is not None and seen.claim.is_in_the_making)
    if at is None and component == SCHEDULER and is_unanswered and _is_overdue(told.since, now):
        at = told.since
    if at is None:
        return told
    raw, raw_from = (told.explained.raw, told.explained.raw_from) if told.explained is not None else ("", "")
    found = queue_holds.component_silent(component, at, raw, raw_from)
    return Status(Phase.BLOCKED, found.reason, found.sentence, at, dict(found.facts), found.actions, found)


def _awaited(told: Status, seen: Observation) -> str:
    """Returns the component that has to act next; "" if none of them has to."""
    if told.phase not in _WAITING:
        return ""
    if seen.job is None:
        # Kueue's webhook sees every Job: without it, the API server does not answer.
        return QUEUE_SYSTEM if told.reason == "cluster_unavailable" else ""
    staying = [pod for pod in seen.pods if pod.deleting_since is None and not pod.is_over]
    if any(gate.startswith(KUEUE_GATES) for pod in staying for gate in pod.gates):
        return QUEUE_SYSTEM
    if staying:
        return SCHEDULER if any(not pod.node for pod in staying) else ""
    is_admitted = seen.queue is not None and seen.queue.is_true("Admitted") and not seen.queue.is_true("Evicted")
    return CONTROLLERS if is_admitted or not seen.job.suspend else QUEUE_SYSTEM


def _kubelet(told: Status, seen: Observation, now: datetime) -> Status | None:
    """The node is ready, but its kubelet has reported nothing about a pod that it got some minutes ago."""
    pod = seen.pod
    if told.reason != "preparing" or told.since is None or pod is None or pod.containers or pod.init_containers:
        return None
    if now - told.since <= FIRST_REPORT:
        return None
    found = queue_holds.kubelet_silent(pod.node, told.since)
    facts = {**told.facts, **found.facts}
    return Status(Phase.BLOCKED, found.reason, found.sentence, told.since, facts, found.actions, found)


def _is_overdue(since: datetime | None, now: datetime) -> bool:
    return since is not None and now - since > FIRST_ANSWER
