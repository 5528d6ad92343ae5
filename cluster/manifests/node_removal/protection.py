"""Annotations that keep autoscalers from removing the node of a pod that would lose its work. Pure.

They stop what an autoscaler does by its own choice: to remove nodes that are used little, and to replace nodes that are
outdated. They stop neither the loss of a node, nor who drains it, nor Karpenter's expiration of a node beyond the
node's `terminationGracePeriod`.
"""

from __future__ import annotations

from cluster.manifests.node_removal.spot import spot_label
from cluster.manifests.run_spec import JOB, RunSpec

PROTECTION = {"karpenter.sh/do-not-disrupt": "true", "cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}


def protection(spec: RunSpec) -> dict[str, str]:
    """Returns none for a job that continues from a checkpoint, and none on spot nodes: Karpenter does not evict such
    pods from a node that it drains, so the program would not get SIGTERM before the provider reclaims the node.
    """
    continues = spec.kind == JOB and spec.checkpoints
    return {} if continues or spot_label(spec.node_labels) is not None else dict(PROTECTION)
