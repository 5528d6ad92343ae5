"""A team's whole namespace against golden files. The rules behind it are tested in tests/tenants."""

from __future__ import annotations

from dataclasses import replace

from cluster.manifests import namespace as manifests
from cluster.manifests.specs import NamespaceSpec, QuotaCell, QuotaSpec
from tests.support import golden_files

SPEC = NamespaceSpec(
    name="team-a",
    owner="tenants.namespace.5",
    group="gpu-portal:team-a",
    cohort="gpu-portal",
    quota=QuotaSpec(
        devices={
            "requests.nvidia.com/gpu": 8,
            "requests.nvidia.com/mig-1g.10gb": 0,
            "gpu.nvidia.com.deviceclass.resource.k8s.io/devices": 2,
        },
        cpu=64,
        memory_gib=512,
    ),
    cells=(
        QuotaCell("nvidia.com/gpu", "a100-mps-1a2b3c4d", 0, 2),
        QuotaCell("nvidia.com/gpu", "a100-5e6f7a8b", 2, 2),
        QuotaCell("dra.portal/h100", "h100-00112233", 1, 0),
    ),
    is_held=False,
)


def test_a_namespace_is_exactly_these_objects() -> None:
    golden_files.check("namespace", manifests.namespace_objects(SPEC))


def test_without_a_queue_system_the_walls_are_the_same_and_no_queue_is_made() -> None:
    without = manifests.namespace_objects(replace(SPEC, cells=None))
    assert without == [one for one in manifests.namespace_objects(SPEC) if not one["kind"].endswith("Queue")]


def test_a_held_queue_differs_in_nothing_but_the_hold() -> None:
    held = manifests.cluster_queue(replace(SPEC, is_held=True), SPEC.cells or ())
    held["spec"].pop("stopPolicy")
    opened = manifests.cluster_queue(SPEC, SPEC.cells or ())
    assert opened["spec"].pop("stopPolicy") == "None"
    assert held == opened


def test_the_order_of_cells_changes_nothing() -> None:
    cells = SPEC.cells or ()
    assert manifests.cluster_queue(SPEC, cells[::-1]) == manifests.cluster_queue(SPEC, cells)


def test_every_object_carries_the_two_labels() -> None:
    for one in manifests.namespace_objects(SPEC):
        labels = one["metadata"]["labels"]
        assert labels["app.kubernetes.io/managed-by"] == "gpu-portal"
        assert labels["gpu-portal/owner"] == "tenants.namespace.5"


def test_every_borrowing_limit_is_sent() -> None:
    """An absent one would mean unlimited."""
    groups = manifests.cluster_queue(SPEC, SPEC.cells or ())["spec"]["resourceGroups"]
    resources = [resource for group in groups for flavor in group["flavors"] for resource in flavor["resources"]]
    assert len(resources) == 4
    assert all("borrowingLimit" in resource for resource in resources)


def test_storage_is_bounded_where_the_cluster_offers_it_and_nothing_else_changes() -> None:
    quota = manifests.resource_quota(replace(SPEC, quota=replace(SPEC.quota, storage_gib=50)))
    assert quota["spec"]["hard"].pop("requests.storage") == "50Gi"
    assert quota == manifests.resource_quota(SPEC)
    none = manifests.resource_quota(replace(SPEC, quota=replace(SPEC.quota, storage_gib=0)))
    assert none["spec"]["hard"]["requests.storage"] == "0Gi"
