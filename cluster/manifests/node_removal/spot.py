"""Spot nodes: which labels say that the provider may reclaim a node at any time. Pure.

As the managed Kubernetes services and Karpenter document their labels; `karpenter.sh/capacity-type` is set on every
provider that Karpenter supports.
"""

from __future__ import annotations

from collections.abc import Mapping

# Label and value, in the order in which they are preferred for a class.
SPOT_LABELS: tuple[tuple[str, str], ...] = (
    ("karpenter.sh/capacity-type", "spot"),
    ("eks.amazonaws.com/capacityType", "SPOT"),
    ("cloud.google.com/gke-spot", "true"),
    # Before spot VMs: the same, and for at most 24 hours.
    ("cloud.google.com/gke-preemptible", "true"),
    ("kubernetes.azure.com/scalesetpriority", "spot"),
)


def spot_label(labels: Mapping[str, str]) -> tuple[str, str] | None:
    """Returns the label that makes it a spot node, or a class for spot nodes; None if none does."""
    return next((found for found in SPOT_LABELS if labels.get(found[0]) == found[1]), None)
