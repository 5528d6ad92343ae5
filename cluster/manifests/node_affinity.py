"""The nodes that a run's pods may be placed on, beside the labels of its class: a required node affinity. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from cluster.manifests.metadata import Manifest
from cluster.manifests.site import SiteProfile

# The nodeSelectorTerms of Kubernetes: alternatives. Without any, every node is allowed.
NodeTerms = Sequence[Mapping[str, Any]]

HOST_LABEL = "kubernetes.io/hostname"
# A node with Gaudi has no label of the name of its resource. By Intel's rule for NFD, by NFD's own PCI labels (vendor
# alone, as Habana's operator configures it, or with the device class), and by Habana's feature discovery.
GAUDI_NODE_LABELS = (
    "intel.feature.node.kubernetes.io/gaudi",
    "feature.node.kubernetes.io/pci-1da3.present",
    "feature.node.kubernetes.io/pci-1200_1da3.present",
    "habana.ai/device.count",
)
# A run without a GPU avoids nodes with GPUs: their cpu and memory are for GPU workloads.
GPU_NODE_LABELS = (
    "nvidia.com/gpu.present",
    "feature.node.kubernetes.io/amd-gpu",
    "intel.feature.node.kubernetes.io/gpu",
    *GAUDI_NODE_LABELS,
)


def required_affinity(*conditions: NodeTerms) -> Manifest:
    """All conditions hold for a node of the pod. {}: there is none, and the pod has no affinity."""
    terms: list[Manifest] = [{}]
    for alternatives in filter(None, conditions):
        terms = [_both(one, other) for one in terms for other in alternatives]
    if terms == [{}]:
        return {}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def _both(one: Mapping[str, Any], other: Mapping[str, Any]) -> Manifest:
    parts = ((key, [*one.get(key, ()), *other.get(key, ())]) for key in ("matchExpressions", "matchFields"))
    return {key: expressions for key, expressions in parts if expressions}


def gpu_node_labels(site: SiteProfile) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*GPU_NODE_LABELS, *site.gpu_node_labels)))


def off_gpu_nodes(site: SiteProfile, gpu_nodes: Collection[str]) -> NodeTerms:
    """`gpu_nodes`: host names of nodes that have GPUs and no label that says so."""
    absent: list[Manifest] = [{"key": label, "operator": "DoesNotExist"} for label in gpu_node_labels(site)]
    if gpu_nodes:
        absent.append({"key": HOST_LABEL, "operator": "NotIn", "values": sorted(gpu_nodes)})
    return [{"matchExpressions": absent}]
