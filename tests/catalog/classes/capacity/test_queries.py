"""Capacity from the mirror: existing, used and free units; unknown when the mirror has no data."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.core.actor import system_actor
from catalog.classes import queries as class_queries
from catalog.classes.capacity import queries
from catalog.classes.capacity.types import Capacity
from catalog.classes.proposals import actions
from catalog.discovery import queries as discovery_queries
from catalog.models import GpuClass
from cluster.models import Cluster, MirrorEpoch, MirrorNode
from tests.support.rows import make, mirrored


@pytest.fixture
def a100(cluster: Cluster) -> GpuClass:
    return make.gpu_class(cluster, slug="a100")


def capacity(gpu_class: GpuClass) -> Capacity:
    return queries.capacities(gpu_class.cluster, [gpu_class])[gpu_class.pk]


def figures(gpu_class: GpuClass) -> tuple[int | None, ...]:
    found = capacity(gpu_class)
    return found.allocatable, found.used, found.free, found.most_on_one_node, found.largest_node


def two_on(node: str, *, name: str = "busy", phase: str = "Running", gpu_class: str = "a100") -> dict[str, Any]:
    return mirrored.pod(name, node=node, namespace="team-a", gpu_class=gpu_class, phase=phase, **{"nvidia.com/gpu": 2})


def test_an_idle_class_is_free_altogether(a100: GpuClass) -> None:
    mirrored.hardware_seen(a100.cluster)
    assert figures(a100) == (16, 0, 16, 4, 4)
    assert capacity(a100).is_current


def test_pods_on_nodes_that_are_not_finished_use_units(a100: GpuClass) -> None:
    pods = [
        two_on("a100-1"),
        two_on("a100-2", name="starting", phase="Pending"),
        two_on("a100-3", name="done", phase="Succeeded"),
    ]
    mirrored.hardware_seen(a100.cluster, Pod=pods)
    assert figures(a100) == (16, 4, 12, 4, 4)


def test_pods_of_strangers_use_units_as_well(a100: GpuClass) -> None:
    mirrored.hardware_seen(a100.cluster, Pod=[two_on("a100-1", gpu_class="")])
    assert figures(a100) == (16, 2, 14, 4, 4)


def test_pods_that_wait_for_a_node_use_nothing_yet(a100: GpuClass) -> None:
    mirrored.hardware_seen(a100.cluster, Pod=[two_on("", phase="Pending")])
    assert figures(a100) == (16, 0, 16, 4, 4)


def test_a_cordoned_node_is_allocatable_but_not_free(a100: GpuClass) -> None:
    mirrored.hardware_seen(a100.cluster)
    MirrorNode.objects.filter(name="a100-1").update(schedulable=False)
    assert figures(a100) == (16, 0, 12, 4, 4)


def test_a_node_that_is_not_ready_has_nothing_to_give(a100: GpuClass) -> None:
    mirrored.hardware_seen(a100.cluster, Pod=[two_on("a100-1")])
    MirrorNode.objects.filter(name="a100-1").update(ready=False)
    assert figures(a100) == (12, 2, 12, 4, 4)


def test_units_are_of_the_classs_own_nodes(cluster: Cluster) -> None:
    """Four classes are counted as nvidia.com/gpu; node labels separate their nodes."""
    mirrored.hardware_seen(cluster, Pod=[two_on("a100-sliced")])
    found = discovery_queries.discover_cluster(cluster)
    assert found is not None
    classes = actions.accept_proposals(list(found.proposals), by=system_actor("test"), cluster=cluster)
    found_units = queries.capacities(cluster, classes)
    seen = {one.slug: found_units[one.pk] for one in classes}
    assert seen["a100-sxm4-80gb"].used == 0
    assert (seen["a100-sxm4-80gb-time-sliced"].used, seen["a100-sxm4-80gb-time-sliced"].free) == (2, 14)
    assert {proposal.slug: proposal.units for proposal in found.proposals} | {"cpu": None} == {
        slug: one.allocatable for slug, one in seen.items()
    } | {"cpu": None}


def test_a_dra_class_counts_devices_and_those_that_claims_hold(cluster: Cluster) -> None:
    h100 = make.gpu_class(
        cluster,
        slug="h100",
        interface="dra",
        resource="dra.portal/h100",
        device_class="gpu.nvidia.com",
        device_selector="true",
        node_labels={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
    )
    slices = mirrored.hardware.read("mixed").slices
    pool, device = slices[0]["spec"]["pool"]["name"], slices[0]["spec"]["devices"][0]["name"]
    result = {"request": "gpu", "driver": "gpu.nvidia.com", "pool": pool, "device": device}
    claim = mirrored.with_metadata(
        {
            "metadata": {"name": "claim", "namespace": "team-a"},
            "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}},
            "status": {"allocation": {"devices": {"results": [result]}}},
        }
    )
    mirrored.hardware_seen(cluster, ResourceClaim=[claim])
    assert figures(h100) == (8, 1, 7, 7, 8)


def test_without_a_mirror_everything_is_unknown_and_nothing_is_zero(a100: GpuClass) -> None:
    assert figures(a100) == (None, None, None, None, None)
    mirrored.hardware_seen(a100.cluster)
    MirrorEpoch.objects.all().delete()
    assert figures(a100) == (None, None, None, None, None)
    assert class_queries.promise_limits([a100]) == {a100.pk: None}


def test_the_number_of_queries_does_not_grow_with_the_catalog(cluster: Cluster, django_assert_num_queries: Any) -> None:
    mirrored.hardware_seen(cluster)
    found = discovery_queries.discover_cluster(cluster)
    assert found is not None
    actions.accept_proposals(list(found.proposals), by=system_actor("test"), cluster=cluster)
    with django_assert_num_queries(3):
        assert len(queries.capacities(cluster, list(class_queries.open_classes(cluster)))) == 17
