"""Simulated hardware → classes: every kind of capacity once, none mixed up."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml

from accounts.actor import Actor, system
from accounts.models import User
from catalog import actions, queries
from catalog.discovery import DEVICE_CLASS_RESOURCES, Device, Discovery, Node, Proposal, discover
from catalog.models import GpuClass, Pool
from cluster.models import Cluster
from portal.errors import Refused
from tests import mirrored

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def mixed(cluster: Cluster) -> Discovery:
    mirrored.hardware_seen(cluster, "mixed")
    found = queries.discover(cluster)
    assert found is not None
    return found


def by_slug(found: Discovery) -> dict[str, Proposal]:
    return {proposal.slug: proposal for proposal in found.proposals}


def test_every_kind_of_the_mixed_hardware_is_one_class(mixed: Discovery) -> None:
    assert {proposal.slug: (proposal.resource, proposal.units) for proposal in mixed.proposals} == {
        "a100-sxm4-80gb": ("nvidia.com/gpu", 16),
        "a100-sxm4-80gb-1g-10gb": ("nvidia.com/mig-1g.10gb", 7),
        "a100-sxm4-80gb-1g-10gb-me": ("nvidia.com/mig-1g.10gb.me", 1),
        "a100-sxm4-80gb-1g-10gb-single": ("nvidia.com/gpu", 28),
        "a100-sxm4-80gb-2g-20gb": ("nvidia.com/mig-2g.20gb", 4),
        "a100-sxm4-80gb-3g-40gb": ("nvidia.com/mig-3g.40gb", 4),
        "a100-sxm4-80gb-mps": ("nvidia.com/gpu", 16),
        "a100-sxm4-80gb-shared": ("nvidia.com/gpu.shared", 16),
        "a100-sxm4-80gb-time-sliced": ("nvidia.com/gpu", 16),
        "cpu": ("", 126),
        "gaudi": ("habana.ai/gaudi", 8),
        "h100-80gb-hbm3": ("dra.portal/h100", 8),
        "intel-xe-e211": ("gpu.intel.com/xe", 4),
        "mi300x-oam": ("amd.com/gpu", 8),
    }
    assert mixed.problems == ()


@pytest.mark.parametrize(
    ("slug", "expected"),
    [
        ("a100-sxm4-80gb", ("none", "none", 1, 81920, Fraction(1), 4)),
        ("a100-sxm4-80gb-2g-20gb", ("2g.20gb", "none", 1, 19968, Fraction(2, 7), 1)),
        ("a100-sxm4-80gb-1g-10gb-single", ("1g.10gb", "none", 1, 9856, Fraction(1, 7), 1)),
        ("a100-sxm4-80gb-mps", ("none", "mps", 4, 20480, Fraction(1, 4), 1)),
        # A time slice sees the whole memory, and may take it.
        ("a100-sxm4-80gb-shared", ("none", "time-slicing", 4, 81920, Fraction(1, 4), 1)),
        ("a100-sxm4-80gb-time-sliced", ("none", "time-slicing", 4, 81920, Fraction(1, 4), 1)),
        ("h100-80gb-hbm3", ("none", "none", 1, 81559, Fraction(1), 8)),
        ("mi300x-oam", ("none", "none", 1, 196608, Fraction(1), 8)),
        ("gaudi", ("none", "none", 1, None, Fraction(1), 8)),
    ],
)
def test_axes_are_read_from_labels_not_from_names(mixed: Discovery, slug: str, expected: tuple[Any, ...]) -> None:
    found = by_slug(mixed)[slug]
    axes = (found.partition, found.sharing, found.replicas, found.memory_mib, found.weight, found.units_per_workload)
    assert axes == expected


def test_classes_of_one_resource_name_select_different_nodes(mixed: Discovery) -> None:
    """Neither's labels may contain the other's: the scheduler would mix them up."""
    whole = [proposal for proposal in mixed.proposals if proposal.resource == "nvidia.com/gpu"]
    assert len(whole) == 4
    for one in whole:
        for other in whole:
            assert one is other or not one.node_labels.items() <= other.node_labels.items()


def test_a_dra_class_names_its_devices_by_cel(mixed: Discovery) -> None:
    h100 = by_slug(mixed)["h100-80gb-hbm3"]
    assert (h100.interface, h100.device_class) == ("dra", "gpu.nvidia.com")
    assert h100.device_selector == 'device.attributes["gpu.nvidia.com"].productName == "NVIDIA H100 80GB HBM3"'


def test_only_vendors_taints_are_tolerated() -> None:
    taints = (
        {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"},
        {"key": "maintenance", "value": "", "effect": "NoSchedule"},
    )
    found = discover([Node("n1", {}, taints, {"nvidia.com/gpu": 2, "cpu": 8, "memory": 32})])
    tolerated = found.proposals[0].tolerations
    assert tolerated == ({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},)


def test_the_same_hardware_gives_the_same_classes_in_any_order() -> None:
    nodes = [
        Node(f"n{n}", {"nvidia.com/gpu.product": "NVIDIA-L4", "zone": str(n)}, (), {"nvidia.com/gpu": n, "cpu": 64})
        for n in (1, 2, 3)
    ]
    assert discover(nodes) == discover(reversed(nodes))
    assert discover(nodes).proposals[0].units == 6


def test_a_device_class_that_kueue_does_not_count_is_a_problem_and_no_class() -> None:
    node = Node("n1", {}, (), {"cpu": 8})
    device = Device("gpu.example.com", "n1", {"productName": "X"}, None)
    found = discover([node], [device])
    assert found.proposals == ()
    assert "deviceClassMappings" in found.problems[0]


def test_the_names_of_dra_devices_are_those_that_kueue_is_configured_with() -> None:
    configuration = yaml.safe_load((ROOT / "deploy/kueue/manager-config.yaml").read_text())
    mappings = configuration["resources"]["deviceClassMappings"]
    assert {name: one["name"] for one in mappings for name in one["deviceClassNames"]} == DEVICE_CLASS_RESOURCES


def test_nothing_is_proposed_while_nothing_is_known(cluster: Cluster) -> None:
    assert queries.discover(cluster) is None


def test_proposals_become_open_classes_and_those_that_exist_are_left_as_they_are(
    mixed: Discovery, cluster: Cluster
) -> None:
    made = actions.accept_proposals(list(mixed.proposals), by=system("test"), cluster=cluster)
    assert len(made) == len(mixed.proposals)
    assert {gpu_class.life_cycle for gpu_class in made} == {"active"}
    GpuClass.objects.filter(slug="gaudi").update(name="Gaudi 3, room B")
    assert actions.accept_proposals(list(mixed.proposals), by=system("test"), cluster=cluster) == []
    assert GpuClass.objects.get(slug="gaudi").name == "Gaudi 3, room B"
    assert Pool.objects.get(cluster=cluster).due_at is not None


def test_the_catalog_is_edited_by_operators_only(cluster: Cluster, olga: User, dana: User, alice: User) -> None:
    for user in (dana, alice):
        with pytest.raises(Refused) as refused:
            actions.create_class(
                slug="cpu", cluster=cluster, by=Actor(user=user, via="page"), name="CPU", interface="none"
            )
        assert refused.value.code == "not_allowed"
    made = actions.create_class(
        slug="cpu", cluster=cluster, by=Actor(user=olga, via="page"), name="CPU", interface="none"
    )
    assert made.life_cycle == "draft"
