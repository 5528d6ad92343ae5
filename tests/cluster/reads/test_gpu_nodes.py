"""Nodes with GPUs that no label marks."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.manifests.node_affinity import GPU_NODE_LABELS
from cluster.models import Cluster
from cluster.reads.gpu_nodes import unlabelled_gpu_nodes
from tests.support.rows import mirrored

pytestmark = pytest.mark.django_db
Raw = dict[str, Any]


def node(name: str, resource: str = "", units: int = 4, **labels: str) -> Raw:
    amounts = {"cpu": "8", **({resource: str(units)} if resource else {})}
    labels = {"kubernetes.io/hostname": f"host-{name}", **{key.replace("__", "/"): one for key, one in labels.items()}}
    status = {"capacity": amounts, "allocatable": amounts}
    return mirrored.ready({"metadata": {"name": name, "labels": labels}, "spec": {}, "status": status})


def test_they_are_known_by_what_they_advertise_unless_a_label_says_it(
    cluster: Cluster, django_assert_num_queries: Any
) -> None:
    mirrored.seen(
        cluster,
        Node=[
            node("nvidia", "nvidia.com/gpu"),
            node("slices", "nvidia.com/mig-1g.10gb"),
            node("amd", "amd.com/gpu"),
            node("gaudi", "habana.ai/gaudi"),
            node("stopped", "nvidia.com/gpu", 0),
            node("labelled", "nvidia.com/gpu", **{"nvidia.com__gpu.present": "true"}),
            node("by-site", "nvidia.com/gpu", pool__gpu="yes"),
            node("cpu"),
            node("efa", "vpc.amazonaws.com/efa"),
        ],
    )

    with django_assert_num_queries(1):
        found = unlabelled_gpu_nodes(cluster.pk, [*GPU_NODE_LABELS, "pool/gpu"])

    assert found == ["host-amd", "host-gaudi", "host-nvidia", "host-slices", "host-stopped"]


def test_devices_of_slices_count(cluster: Cluster) -> None:
    mirrored.hardware_seen(cluster)

    everything, without_labels = unlabelled_gpu_nodes(cluster.pk, GPU_NODE_LABELS), unlabelled_gpu_nodes(cluster.pk, [])
    assert set(everything) < set(without_labels)
    assert "h100" in "".join(without_labels)
    assert not [name for name in without_labels if "cpu" in name]
