"""Notices that a node is being removed, as taints that the handlers of a provider or an autoscaler set. Pure.

From the code and the documentation of aws-node-termination-handler (with `taintNode`), of GoogleCloudPlatform's
k8s-node-termination-handler and GKE's host maintenance, of AKS's node auto-drain, of Karpenter (`disrupted` since v1,
`disruption` before) and of the Cluster Autoscaler. Karpenter and AKS use one taint for several reasons, and its
sentence names no single one. A rebalance recommendation and a deletion candidate are not listed: such nodes may stay.
GKE sets no taint for a spot node that is reclaimed: its kubelet shuts down, which the pods report.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class RemovalNotice:
    """`code`: the cause of an interruption by it. `now` and `then`: clauses about the pod's node, before and after."""

    code: str
    now: str
    then: str


_KARPENTER = RemovalNotice(
    "removed_by_karpenter",
    "Karpenter removes it, as when a spot node is reclaimed, or is expired, outdated or used too little",
    "its node was removed by Karpenter",
)
# In the order of preference for a node that has several.
NOTICES: Mapping[str, RemovalNotice] = {
    "aws-node-termination-handler/spot-itn": RemovalNotice(
        "spot_reclaimed",
        "AWS reclaims the spot node about two minutes after its notice",
        "AWS reclaimed its spot node",
    ),
    "aws-node-termination-handler/scheduled-maintenance": RemovalNotice(
        "provider_maintenance", "AWS has scheduled maintenance of it", "its node was removed for maintenance by AWS"
    ),
    "aws-node-termination-handler/asg-lifecycle-termination": RemovalNotice(
        "scaled_in", "its Auto Scaling group terminates it", "its node was terminated by its Auto Scaling group"
    ),
    "cloud.google.com/impending-node-termination": RemovalNotice(
        "provider_termination", "Google Cloud is about to terminate it", "Google Cloud terminated its node"
    ),
    "remediator.kubernetes.azure.com/unschedulable": RemovalNotice(
        "provider_event",
        "AKS drains it because of an event of Azure, as when a spot node is reclaimed",
        "AKS drained its node because of an event of Azure",
    ),
    "karpenter.sh/disrupted": _KARPENTER,
    "karpenter.sh/disruption": _KARPENTER,
    "ToBeDeletedByClusterAutoscaler": RemovalNotice(
        "removed_by_autoscaler", "the cluster autoscaler removes it", "its node was removed by the cluster autoscaler"
    ),
}
# By code.
CAUSES: Mapping[str, str] = {notice.code: notice.then for notice in NOTICES.values()}


def removal_notice(taints: Iterable[str]) -> RemovalNotice | None:
    """`taints`: the keys of the node's taints. Returns None without a notice."""
    present = set(taints)
    return next((notice for key, notice in NOTICES.items() if key in present), None)
