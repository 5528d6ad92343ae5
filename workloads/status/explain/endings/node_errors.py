"""An error of a GPU that the node reported while a pod ran there: a cause that the pod's own end does not tell. Pure.

Who reports is for instance the node problem detector. The event names the node and seldom the GPU: whether it was one
of the pod's is not known, and not claimed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta

from cluster.reads.observed import Pod, WarningEvent
from cluster.reads.xid import hardware_xid, xid_words
from workloads.status.explain.endings.pod_termination import ENDED, last_container
from workloads.status.explain.types import Explanation

REASON = "node_gpu_error"
# An error of a GPU may show in these ways. What tells its own cause needs no other.
UNEXPLAINED = frozenset({"crashed", "failed", "killed", "gpu_program_error", "nccl_timeout", "peer_lost"})
# The program may end before the report, and the report may come from a log that is read now and then.
REPORTED_WITHIN = timedelta(minutes=2)


@dataclass(frozen=True)
class NodeError:
    sentence: str
    raw: str


def node_error(pod: Pod, errors: Iterable[WarningEvent]) -> NodeError | None:
    """`errors`: latest first. The newest one of hardware counts."""
    last = last_container(pod)
    if last is None or last.ended_at is None:
        return None
    since, until = last.since or pod.created_at, last.ended_at + REPORTED_WITHIN
    for error in errors:
        code = hardware_xid(f"{error.reason} {error.message}")
        if code is not None and error.object_name == pod.node and error.last_at >= since and error.first_at <= until:
            sentence = f"While it ran, node {pod.node} reported {xid_words(code)}."
            return NodeError(sentence, f"{error.reason}: {error.message}")
    return None


def with_node_errors(told: Explanation, pod: Pod, errors: Iterable[WarningEvent]) -> Explanation:
    found = node_error(pod, errors) if told.reason in UNEXPLAINED else None
    return told if found is None else with_node_error(told, found)


def with_node_error(told: Explanation, found: NodeError) -> Explanation:
    return replace(
        told,
        reason=REASON,
        sentence=f"{told.sentence} {found.sentence}",
        remedy="Contact an operator. If it is started again, it may get another GPU.",
        actions=ENDED,
        raw=f"{told.raw}\n{found.raw}",
    )
