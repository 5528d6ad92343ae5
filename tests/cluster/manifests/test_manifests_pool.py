"""Flavors and the cohort as whole objects, against golden files."""

from __future__ import annotations

from cluster.manifests import pool as manifests
from cluster.manifests.specs import CohortSpec, FlavorSpec, QuotaCell
from tests.support import golden_files

A100 = FlavorSpec(
    name="a100-5e6f7a8b",
    owner="catalog.pool.1",
    slug="a100",
    node_labels={"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.sharing-strategy": "none"},
    tolerations=({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},),
    topology="gpu-portal",
)
H100 = FlavorSpec(
    name="h100-00112233", owner="catalog.pool.1", slug="h100", node_labels={}, tolerations=(), topology=""
)
COHORT = CohortSpec(
    name="gpu-portal",
    owner="catalog.pool.1",
    cells=(QuotaCell("nvidia.com/gpu", "a100-5e6f7a8b", 14), QuotaCell("dra.portal/h100", "h100-00112233", 0)),
)


def test_the_pool_is_exactly_these_objects() -> None:
    objects = [manifests.resource_flavor(A100), manifests.resource_flavor(H100), manifests.cohort(COHORT)]
    golden_files.check("pool", objects)


def test_a_flavor_without_topology_names_none() -> None:
    """Dynamic allocation cannot be topology-aware; Kueue would refuse a topology without node labels."""
    assert "topologyName" not in manifests.resource_flavor(H100)["spec"]
