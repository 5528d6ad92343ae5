"""Simulated hardware → classes: every kind of capacity becomes one class, and none are mixed."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from accounts.core.actor import Actor, system_actor
from accounts.models import User
from catalog.classes import actions as class_actions
from catalog.classes.proposals import actions
from catalog.discovery import queries
from catalog.discovery.inventory import discover
from catalog.discovery.types import ClassProposal, Device, Discovery, NodeFacts
from catalog.models import GpuClass, Pool
from cluster.manifests.node_removal.spot import spot_label
from cluster.models import Cluster
from cluster.reads import queries as mirror
from portal.core.errors import Refused
from tests.support.rows import mirrored

ROOT = Path(__file__).parents[3]


@pytest.fixture
def mixed(cluster: Cluster) -> Discovery:
    mirrored.hardware_seen(cluster, "mixed")
    found = queries.discover_cluster(cluster)
    assert found is not None
    return found


def by_slug(found: Discovery) -> dict[str, ClassProposal]:
    return {proposal.slug: proposal for proposal in found.proposals}


A100 = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
SHARED_A100 = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-SHARED", "nvidia.com/gpu.replicas": "4"}
MI300X = {"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"}


def strategy(value: str, of: str = "gpu") -> dict[str, str]:
    return {f"nvidia.com/{of}.sharing-strategy": value}


# Slug: resource, partition, sharing, replicas, units, memory in MiB, weight, units per workload, taint, node labels.
MIXED: dict[str, tuple[Any, ...]] = {
    "a100-sxm4-80gb": (
        *("nvidia.com/gpu", "none", "none", 1, 16, 81920, Fraction(1), 4),
        *("nvidia.com/gpu", A100 | strategy("none")),
    ),
    "a100-sxm4-80gb-1g-10gb": (
        *("nvidia.com/mig-1g.10gb", "1g.10gb", "none", 1, 7, 9856, Fraction(2, 15), 1),
        *("nvidia.com/gpu", A100 | strategy("none", "mig-1g.10gb")),
    ),
    "a100-sxm4-80gb-1g-10gb-me": (
        *("nvidia.com/mig-1g.10gb.me", "1g.10gb.me", "none", 1, 1, 9856, Fraction(2, 15), 1),
        *("nvidia.com/gpu", A100 | strategy("none", "mig-1g.10gb.me")),
    ),
    "a100-sxm4-80gb-2g-20gb": (
        *("nvidia.com/mig-2g.20gb", "2g.20gb", "none", 1, 4, 19968, Fraction(4, 15), 1),
        *("nvidia.com/gpu", A100 | strategy("none", "mig-2g.20gb")),
    ),
    "a100-sxm4-80gb-3g-40gb": (
        *("nvidia.com/mig-3g.40gb", "3g.40gb", "none", 1, 4, 40192, Fraction(7, 15), 1),
        *("nvidia.com/gpu", A100 | strategy("none", "mig-3g.40gb")),
    ),
    # Every GPU with the same MIG layout: slices under the resource name of a GPU.
    "a100-sxm4-80gb-1g-10gb-single": (
        *("nvidia.com/gpu", "1g.10gb", "none", 1, 28, 9856, Fraction(1, 7), 1),
        *("nvidia.com/gpu", {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb"} | strategy("none")),
    ),
    # Seven slices, time-sliced by four: the same resource name as slices that are not shared.
    "a100-sxm4-80gb-1g-10gb-time-sliced": (
        *("nvidia.com/mig-1g.10gb", "1g.10gb", "time-slicing", 4, 28, 9856, Fraction(1, 28), 1),
        *("nvidia.com/gpu", A100 | {"nvidia.com/mig-1g.10gb.replicas": "4"} | strategy("time-slicing", "mig-1g.10gb")),
    ),
    # A time slice sees the whole memory and may use all of it.
    "a100-sxm4-80gb-shared": (
        *("nvidia.com/gpu.shared", "none", "time-slicing", 4, 16, 81920, Fraction(1, 4), 1),
        *("nvidia.com/gpu", A100 | {"nvidia.com/gpu.replicas": "4"} | strategy("time-slicing")),
    ),
    "a100-sxm4-80gb-time-sliced": (
        *("nvidia.com/gpu", "none", "time-slicing", 4, 16, 81920, Fraction(1, 4), 1),
        *("nvidia.com/gpu", SHARED_A100 | strategy("time-slicing")),
    ),
    "a100-sxm4-80gb-mps": (
        *("nvidia.com/gpu", "none", "mps", 4, 16, 20480, Fraction(1, 4), 1),
        *("nvidia.com/gpu", SHARED_A100 | strategy("mps")),
    ),
    "h100-80gb-hbm3": (
        *("dra.portal/h100", "none", "none", 1, 8, 81559, Fraction(1), 8),
        *("nvidia.com/gpu", {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}),
    ),
    "mi300x-oam": (
        *("amd.com/gpu", "none", "none", 1, 8, 196608, Fraction(1), 8),
        *("amd.com/gpu", MI300X | {"amd.com/compute-memory-partition": "spx_nps1"}),
    ),
    # No label says how much memory a partition may use.
    "mi300x-oam-cpx-nps4": (
        *("amd.com/cpx_nps4", "cpx_nps4", "none", 1, 64, None, Fraction(1, 8), 1),
        *("amd.com/gpu", MI300X | {"amd.com/compute-memory-partition": "cpx_nps4"}),
    ),
    "intel-xe-e211": (
        *("gpu.intel.com/xe", "none", "none", 1, 4, None, Fraction(1), 4),
        *("gpu.intel.com/xe", {"gpu.intel.com/device-id.0300-e211.present": "true"}),
    ),
    "intel-i915-56c0-shared": (
        *("gpu.intel.com/i915", "none", "time-slicing", 10, 20, None, Fraction(1, 10), 1),
        *("gpu.intel.com/i915", {"gpu.intel.com/device-id.0380-56c0.present": "true"}),
    ),
    "gaudi": (
        *("habana.ai/gaudi", "none", "none", 1, 8, None, Fraction(1), 8),
        *("habana.ai/gaudi", {"intel.feature.node.kubernetes.io/gaudi": "true"}),
    ),
    "cpu": ("", "none", "none", 1, 126, None, Fraction(0), 31, "", {}),
}


def test_every_kind_of_the_mixed_hardware_is_exactly_one_class(mixed: Discovery) -> None:
    assert set(by_slug(mixed)) == set(MIXED)
    assert len(mixed.proposals) == len(MIXED)
    assert mixed.problems == ()


@pytest.mark.parametrize("slug", MIXED)
def test_a_proposal_has_everything_filled_in(mixed: Discovery, slug: str) -> None:
    found = by_slug(mixed)[slug]
    tolerated = [(one["key"], one["operator"], one["effect"]) for one in found.tolerations]
    *values, taint, labels = MIXED[slug]
    assert [
        *(found.resource, found.partition, found.sharing, found.replicas),
        *(found.units, found.memory_mib, found.weight, found.units_per_workload),
    ] == values
    assert tolerated == ([(taint, "Exists", "NoSchedule")] if taint else [])
    assert found.node_labels == labels
    assert found.name
    assert found.cpu_per_unit >= 1
    assert found.memory_gib_per_unit >= 1


def test_the_morning_hardware_is_whole_cards_slices_and_shares(cluster: Cluster) -> None:
    mirrored.hardware_seen(cluster, "morning")
    found = queries.discover_cluster(cluster)
    assert found is not None
    assert sorted((one.slug, one.units, len(one.nodes)) for one in found.proposals) == [
        ("a100-sxm4-80gb", 32, 8),
        ("a100-sxm4-80gb-2g-20gb", 12, 1),
        ("a100-sxm4-80gb-shared", 16, 1),
    ]


def test_no_node_of_another_class_with_the_same_resource_matches_a_selector(mixed: Discovery, cluster: Cluster) -> None:
    """Otherwise the scheduler would mix the nodes, and units of one class would be charged to the other."""
    labels = {node.name: node.labels for node in mirror.nodes(cluster.pk)}
    pairs = [
        (one, other)
        for one in mixed.proposals
        for other in mixed.proposals
        if one.slug != other.slug and one.resource == other.resource
    ]
    assert {one.resource for one, _other in pairs} == {"nvidia.com/gpu", "nvidia.com/mig-1g.10gb"}
    for one, other in pairs:
        assert not [name for name in other.nodes if one.node_labels.items() <= labels[name].items()]
        assert all(one.node_labels.items() <= labels[name].items() for name in one.nodes)


def test_a_dra_class_names_its_devices_by_cel(mixed: Discovery) -> None:
    h100 = by_slug(mixed)["h100-80gb-hbm3"]
    assert (h100.interface, h100.device_class) == ("dra", "gpu.nvidia.com")
    assert h100.device_selector == 'device.attributes["gpu.nvidia.com"].productName == "NVIDIA H100 80GB HBM3"'


def l4(name: str, *, taints: tuple[dict[str, str], ...] = (), units: int = 2, **labels: str) -> NodeFacts:
    """A node of whole L4 GPUs; `labels` are keyed by what follows `nvidia.com/`, with "_" for "."."""
    told = {"gpu.product": "NVIDIA-L4"} | {name.replace("_", ".").replace("..", "-"): v for name, v in labels.items()}
    return NodeFacts(
        name,
        {f"nvidia.com/{label}": value for label, value in told.items()},
        taints,
        {"nvidia.com/gpu": units, "cpu": 64, "memory": 256},
    )


def test_only_vendors_taints_are_tolerated_those_of_every_node() -> None:
    present = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    maintenance = {"key": "maintenance", "value": "", "effect": "NoSchedule"}
    (found,) = discover([l4("n1"), l4("n2", taints=(present, maintenance))]).proposals
    assert found.tolerations == ({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},)


def test_a_unit_fits_on_the_smallest_node_of_its_class() -> None:
    small = NodeFacts("n2", l4("n2").labels, (), {"nvidia.com/gpu": 4, "cpu": 16, "memory": 64})
    (found,) = discover([l4("n1"), small]).proposals
    assert (found.units, found.units_per_workload, found.cpu_per_unit, found.memory_gib_per_unit) == (6, 4, 3, 14)


# ---- spot nodes ----------------------------------------------------------------------------------------------------


def on(node: NodeFacts, **labels: str) -> NodeFacts:
    return replace(node, labels={**node.labels, **labels})


@pytest.mark.parametrize(
    ("spot", "other"),
    [
        ({"eks.amazonaws.com/capacityType": "SPOT"}, {"eks.amazonaws.com/capacityType": "ON_DEMAND"}),
        ({"karpenter.sh/capacity-type": "spot"}, {"karpenter.sh/capacity-type": "on-demand"}),
        ({"cloud.google.com/gke-spot": "true"}, {"cloud.google.com/gke-nodepool": "fixed"}),
        ({"cloud.google.com/gke-preemptible": "true"}, {"cloud.google.com/gke-nodepool": "fixed"}),
        ({"kubernetes.azure.com/scalesetpriority": "spot"}, {"kubernetes.azure.com/agentpool": "fixed"}),
    ],
)
def test_spot_nodes_are_a_class_of_their_own(spot: dict[str, str], other: dict[str, str]) -> None:
    found = discover([on(l4("n1"), **other), on(l4("n2"), **spot), on(l4("n3"), **spot)])
    assert not found.problems
    fixed, reclaimed = found.proposals
    assert (fixed.slug, fixed.nodes, reclaimed.slug, reclaimed.nodes) == ("l4", ("n1",), "l4-spot", ("n2", "n3"))
    assert spot.items() <= reclaimed.node_labels.items()
    assert other.items() <= fixed.node_labels.items()
    assert "spot" in reclaimed.name


def test_nodes_that_no_label_distinguishes_from_spot_nodes_are_a_problem() -> None:
    found = discover([l4("n1"), on(l4("n2"), **{"cloud.google.com/gke-spot": "true"})])
    assert [one.slug for one in found.proposals] == ["l4-spot"]
    (problem,) = found.problems
    assert "cannot be distinguished by labels from those of n2" in problem


@pytest.mark.parametrize(
    "labels",
    [
        {},
        {"eks.amazonaws.com/capacityType": "ON_DEMAND", "karpenter.sh/capacity-type": "reserved"},
        {"cloud.google.com/gke-spot": "false", "kubernetes.azure.com/scalesetpriority": "regular"},
    ],
)
def test_other_nodes_are_no_spot_nodes(labels: dict[str, str]) -> None:
    assert spot_label(labels) is None


# ---- missing or ambiguous labels -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("node", "sentence"),
    [
        (
            NodeFacts("n1", {}, (), {"nvidia.com/gpu": 2, "cpu": 8}),
            "Node n1 has nvidia.com/gpu, but no label states its product and sharing: "
            "GPU Feature Discovery does not run there.",
        ),
        (
            NodeFacts("n1", {}, (), {"amd.com/gpu": 2, "cpu": 8}),
            "Node n1 has amd.com/gpu, but no label states its product: AMD's node labeller does not run there.",
        ),
        (
            NodeFacts("n1", {}, (), {"gpu.intel.com/xe": 4, "cpu": 8}),
            "Node n1 has 4 gpu.intel.com/xe on an unknown number of GPUs by its labels: "
            "it is not known whether they are shared.",
        ),
        (
            l4("n1", gpu_sharing__strategy="time-slicing", gpu_replicas="1"),
            "Node n1 has contradicting labels for nvidia.com/gpu: sharing-strategy is time-slicing, replicas 1, "
            "and its name does not state that it is shared.",
        ),
        (
            l4("n1", gpu_product="NVIDIA-L4-SHARED"),
            "Node n1 has contradicting labels for nvidia.com/gpu: sharing-strategy is none, replicas 1, "
            "and its name states that it is shared.",
        ),
        (
            l4("n1", gpu_product="NVIDIA-H100-MIG-1g.10gb-SHARED", gpu_sharing__strategy="mps", gpu_replicas="2"),
            "Node n1 reports nvidia.com/gpu as shared by MPS, which device plugins do not support for MIG slices.",
        ),
        (
            l4("n1", gpu_product="NVIDIA-H100-MIG-INVALID"),
            "Node n1 reports NVIDIA-H100-MIG-INVALID: MIG strategy single needs the same MIG layout on all its GPUs, "
            "and the layouts differ.",
        ),
        (
            l4("n1", units=0, gpu_product="NVIDIA-H100-MIG-INVALID"),
            "Node n1 reports NVIDIA-H100-MIG-INVALID: MIG strategy single needs the same MIG layout on all its GPUs, "
            "and the layouts differ.",
        ),
    ],
)
def test_what_labels_do_not_tell_is_a_problem_and_no_class(node: NodeFacts, sentence: str) -> None:
    assert discover([node]) == Discovery((), (sentence,))


def test_an_older_feature_discovery_that_tells_replicas_alone_means_time_slicing() -> None:
    (found,) = discover([l4("n1", gpu_product="NVIDIA-L4-SHARED", gpu_replicas="4")]).proposals
    assert (found.sharing, found.replicas, found.weight) == ("time-slicing", 4, Fraction(1, 4))


def test_labels_that_not_all_nodes_of_a_kind_have_do_not_select_it() -> None:
    old, new = l4("n1"), l4("n2", gpu_sharing__strategy="none")
    (found,) = discover([old, new]).proposals
    assert (found.nodes, found.node_labels) == (("n1", "n2"), {"nvidia.com/gpu.product": "NVIDIA-L4"})


def slices(name: str, **more: str) -> NodeFacts:
    """Slices of one profile, as an older Feature Discovery labels them: without a sharing strategy."""
    labels = {"nvidia.com/gpu.product": "NVIDIA-H100", "nvidia.com/mig-1g.10gb.replicas": "1", **more}
    return NodeFacts(name, labels, (), {"nvidia.com/mig-1g.10gb": 7, "cpu": 64, "memory": 256})


def shared_slices(name: str, **more: str) -> NodeFacts:
    return slices(name, **{"nvidia.com/mig-1g.10gb.replicas": "4", **more})


def test_a_wider_selector_gets_a_label_that_tells_its_nodes_apart() -> None:
    config = "nvidia.com/device-plugin.config"
    found = discover([slices("n1", **{config: "plain"}), shared_slices("n2", **{config: "sliced"})])
    assert found.problems == ()
    assert {one.sharing: one.node_labels[config] for one in found.proposals if config in one.node_labels} == {
        "none": "plain"
    }


def test_two_kinds_that_no_label_tells_apart_are_a_problem_and_the_wider_one_no_class() -> None:
    found = discover([slices("n1"), shared_slices("n2")])
    assert [one.sharing for one in found.proposals] == ["time-slicing"]
    assert found.problems == (
        "H100 · MIG 1g.10gb: 7 nvidia.com/mig-1g.10gb on n1 cannot be distinguished by labels from those of n2 "
        "with the same name. Add a distinct label to the nodes of each kind.",
    )


# ---- similar kinds of capacity ---------------------------------------------------------------------------------------


def test_whole_cards_in_unlike_machines_are_two_classes_where_labels_tell() -> None:
    """The machine decides how the GPUs of a node are connected: GPUs of different machines are not interchangeable."""
    nodes = [l4("n1", gpu_machine="DGX-A"), l4("n2", gpu_machine="Tower-B"), l4("n3", gpu_machine="DGX-A")]
    found = {one.slug: (one.units, one.node_labels["nvidia.com/gpu.machine"]) for one in discover(nodes).proposals}
    assert found == {"l4-dgx-a": (4, "DGX-A"), "l4-tower-b": (2, "Tower-B")}


@pytest.mark.parametrize(
    "nodes",
    [
        [l4("n1", gpu_machine="DGX-A"), l4("n2")],
        [l4("n1", gpu_machine="DGX-A"), l4("n2", gpu_machine="DGX-A")],
        [l4("n1", units=1, gpu_machine="DGX-A"), l4("n2", units=1, gpu_machine="Tower-B")],
        [
            l4(name, gpu_product="NVIDIA-L4-SHARED", gpu_sharing__strategy="mps", gpu_replicas="2", gpu_machine=name)
            for name in ("DGX-A", "Tower-B")
        ],
    ],
    ids=["not all tell", "one machine", "one card each", "shares"],
)
def test_cards_stay_one_class_where_no_connection_differs_or_no_label_tells(nodes: list[NodeFacts]) -> None:
    (found,) = discover(nodes).proposals
    assert "nvidia.com/gpu.machine" not in found.node_labels


def test_shares_of_unlike_numbers_of_users_are_unlike_classes() -> None:
    def shared(replicas: str) -> NodeFacts:
        product = {"gpu_product": "NVIDIA-L4-SHARED", "gpu_sharing__strategy": "time-slicing"}
        return l4(f"n{replicas}", gpu_replicas=replicas, **product)

    found = discover([shared("4"), shared("8")])
    assert {one.replicas: one.node_labels["nvidia.com/gpu.replicas"] for one in found.proposals} == {4: "4", 8: "8"}
    assert len({one.slug for one in found.proposals}) == 2


def test_a_renamed_shared_slice_keeps_its_profile() -> None:
    labels = {
        "nvidia.com/gpu.product": "NVIDIA-H100",
        "nvidia.com/mig-1g.10gb.me.memory": "9984",
        "nvidia.com/mig-1g.10gb.me.slices.gi": "1",
        "nvidia.com/mig-1g.10gb.me.replicas": "3",
        "nvidia.com/mig-1g.10gb.me.sharing-strategy": "time-slicing",
    }
    node = NodeFacts("n1", labels, (), {"nvidia.com/mig-1g.10gb.me.shared": 3, "cpu": 64, "memory": 256})
    (found,) = discover([node]).proposals
    assert (found.slug, found.resource) == ("h100-1g-10gb-me-shared", "nvidia.com/mig-1g.10gb.me.shared")
    assert (found.partition, found.replicas, found.memory_mib) == ("1g.10gb.me", 3, 9984)
    assert found.weight == Fraction(1, 21)


@pytest.mark.parametrize(
    ("labels", "selected"),
    [
        ({"feature.node.kubernetes.io/pci-1200_1da3.present": "true"}, None),
        ({"habana.ai/device.count": "8", "habana.ai/driver.version": "1.22.0"}, {"habana.ai/device.count": "8"}),
        ({"intel.feature.node.kubernetes.io/gaudi-ready": "true"}, {"kubernetes.io/os": "linux"}),
    ],
    ids=str,
)
def test_gaudi_is_selected_by_a_label_that_its_tools_set(
    labels: dict[str, str], selected: dict[str, str] | None
) -> None:
    (found,) = discover([NodeFacts("n1", labels, (), {"habana.ai/gaudi": 8, "cpu": 64, "memory": 256})]).proposals
    assert found.node_labels == (selected or labels)


@pytest.mark.parametrize(
    ("product", "whole_mib", "profile", "compute_slices", "weight"),
    [
        ("NVIDIA-A30", "24576", "1g.6gb", "1", Fraction(1, 4)),
        ("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", "97887", "2g.48gb.gfx", "2", Fraction(1, 2)),
        ("NVIDIA-A100-SXM4-80GB", "81920", "1g.20gb", "1", Fraction(1, 4)),
        ("NVIDIA-A100-SXM4-40GB", "40960", "1g.10gb", "1", Fraction(1, 4)),
        ("NVIDIA-B400", "300000", "2g.99gb", "2", Fraction(2, 7)),
    ],
)
def test_a_slice_is_a_part_of_its_own_gpu(
    product: str, whole_mib: str, profile: str, compute_slices: str, weight: Fraction
) -> None:
    labels = {"gpu.product": product, "gpu.memory": whole_mib, f"mig-{profile}.slices.gi": compute_slices}
    node = NodeFacts(
        "n1", {f"nvidia.com/{name}": value for name, value in labels.items()}, (), {f"nvidia.com/mig-{profile}": 4}
    )
    (found,) = discover([node]).proposals
    assert (found.partition, found.weight) == (profile, weight)


def test_a_claimed_slice_is_a_part_of_its_own_gpu() -> None:
    node = NodeFacts("n1", {}, (), {"cpu": 64, "memory": 256})
    attributes = {"productName": "NVIDIA A30", "profile": "1g.6gb", "type": "gpu"}
    counted = {"gpu.nvidia.com": "dra.portal/h100"}
    (found,) = discover([node], [Device("gpu.nvidia.com", "n1", attributes, 5836)], counted).proposals
    assert found.weight == Fraction(1, 4)


def test_amd_partitions_under_the_name_of_a_card_are_told_by_the_label() -> None:
    def amd(name: str, mode: str, units: int) -> NodeFacts:
        labels = {"amd.com/gpu.product-name": "AMD_Instinct_MI300A", "amd.com/compute-memory-partition": mode}
        return NodeFacts(name, labels, (), {"amd.com/gpu": units, "cpu": 192, "memory": 512})

    found = by_slug(discover([amd("n1", "spx_nps1", 4), amd("n2", "cpx_nps1", 24), amd("n3", "tpx_nps1", 12)]))
    assert {slug: (one.units, one.partition, one.weight) for slug, one in found.items()} == {
        "mi300a": (4, "none", Fraction(1)),
        "mi300a-cpx-nps1": (24, "cpx_nps1", Fraction(1, 6)),
        "mi300a-tpx-nps1": (12, "tpx_nps1", Fraction(1, 3)),
    }


def test_slices_by_claim_keep_the_profile_as_the_driver_writes_it() -> None:
    attributes = {"type": "mig", "productName": "NVIDIA H100", "profile": "1g.10gb+me"}
    node = NodeFacts("n1", {"nvidia.com/gpu.product": "NVIDIA-H100"}, (), {"cpu": 64, "memory": 256})
    counted = {"mig.nvidia.com": "example.org/slices"}
    (found,) = discover([node], [Device("gpu.nvidia.com", "n1", attributes, 9984)], counted).proposals
    assert (found.slug, found.partition, found.weight) == ("h100-1g-10gb-me", "1g.10gb+me", Fraction(1, 7))
    assert (found.device_class, found.resource) == ("mig.nvidia.com", "example.org/slices")
    assert found.device_selector.endswith('.profile == "1g.10gb+me"')
    assert found.units_per_workload == 1


def test_a_tainted_node_without_cards_is_not_offered_for_cpu_work() -> None:
    control_plane = {"key": "node-role.kubernetes.io/control-plane", "value": "", "effect": "NoSchedule"}
    nodes = [
        NodeFacts("n1", {}, (control_plane,), {"cpu": 8, "memory": 32}),
        NodeFacts("n2", {}, (), {"cpu": 4, "memory": 16}),
    ]
    (found,) = discover(nodes).proposals
    assert (found.slug, found.units) == ("cpu", 4)


def test_the_same_hardware_gives_the_same_classes_in_any_order() -> None:
    nodes = [
        NodeFacts(
            f"n{n}", {"nvidia.com/gpu.product": "NVIDIA-L4", "zone": str(n)}, (), {"nvidia.com/gpu": n, "cpu": 64}
        )
        for n in (1, 2, 3)
    ]
    assert discover(nodes) == discover(reversed(nodes))
    assert discover(nodes).proposals[0].units == 6


def test_a_device_class_that_kueue_does_not_count_is_a_problem_and_no_class() -> None:
    node = NodeFacts("n1", {}, (), {"cpu": 8})
    device = Device("gpu.example.com", "n1", {"productName": "X"}, None)
    found = discover([node], [device], {"gpu.example.com": ""})
    assert found.proposals == ()
    assert "deviceClassNames: [gpu.example.com]" in found.problems[0]


def test_a_device_class_that_was_not_tried_yet_is_neither_counted_nor_missing() -> None:
    node = NodeFacts("n1", {}, (), {"cpu": 8})
    found = discover([node], [Device("gpu.example.com", "n1", {"productName": "X"}, None)])
    assert found.proposals == ()
    assert found.problems == ("It is not known yet how Kueue counts device class gpu.example.com on node n1.",)


def test_two_device_classes_of_one_driver_and_a_second_driver_are_classes_of_their_own(cluster: Cluster) -> None:
    mirrored.hardware_seen(cluster, "dra")
    found = queries.discover_cluster(cluster)
    assert found is not None
    assert found.problems == ()
    told = {one.slug: (one.device_class, one.resource, one.units, one.memory_mib) for one in found.proposals}
    assert told == {
        "h100-80gb-hbm3": ("gpu.nvidia.com", "dra.portal/h100", 3, 81559),
        "h100-80gb-hbm3-1g-10gb": ("mig.nvidia.com", "dra.portal/mig", 2, 9984),
        "h100-80gb-hbm3-3g-40gb": ("mig.nvidia.com", "dra.portal/mig", 2, 40448),
        "mi300x-oam": ("gpu.amd.com", "dra.portal/amd", 2, 196592),
        "cpu": ("", "", 62, None),
    }


def test_nothing_is_proposed_while_nothing_is_known(cluster: Cluster) -> None:
    assert queries.discover_cluster(cluster) is None


def test_proposals_become_open_classes_and_those_that_exist_are_left_as_they_are(
    mixed: Discovery, cluster: Cluster
) -> None:
    made = actions.accept_proposals(list(mixed.proposals), by=system_actor("test"), cluster=cluster)
    assert len(made) == len(mixed.proposals)
    assert {gpu_class.life_cycle for gpu_class in made} == {"active"}
    GpuClass.objects.filter(slug="gaudi").update(name="Gaudi 3, room B")
    assert actions.accept_proposals(list(mixed.proposals), by=system_actor("test"), cluster=cluster) == []
    assert GpuClass.objects.get(slug="gaudi").name == "Gaudi 3, room B"
    assert Pool.objects.get(cluster=cluster).due_at is not None


def test_the_catalog_is_edited_by_operators_only(cluster: Cluster, olga: User, dana: User, alice: User) -> None:
    for user in (dana, alice):
        with pytest.raises(Refused) as refused:
            class_actions.create_class(
                slug="cpu", cluster=cluster, by=Actor(user=user, via="page"), name="CPU", interface="none"
            )
        assert refused.value.code == "not_allowed"
    made = class_actions.create_class(
        slug="cpu", cluster=cluster, by=Actor(user=olga, via="page"), name="CPU", interface="none"
    )
    assert made.life_cycle == "draft"
