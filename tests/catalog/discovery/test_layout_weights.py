"""The proposed weight of a slice is its fraction by the layout of the nodes, so that the units of full GPUs are as many
GPUs; where the layout is not known or not one, the proposal says so.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from catalog.discovery.inventory import discover
from catalog.discovery.types import ClassProposal, Device, NodeFacts

A100 = "NVIDIA-A100-SXM4-80GB"
BALANCED = {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}


def mig_node(
    name: str,
    counts: dict[str, int],
    *,
    gpus: int | None,
    product: str = A100,
    memory_mib: int = 81920,
    shared_by: int = 1,
    **allocatable: int,
) -> NodeFacts:
    """A node with MIG strategy mixed. `counts`: slices on all of its GPUs; `allocatable`: units of `nvidia.com/`."""
    labels = {"gpu.product": product, "gpu.memory": str(memory_mib), "mig.strategy": "mixed"}
    labels |= {} if gpus is None else {"gpu.count": str(gpus)}
    for profile, count in counts.items():
        labels |= {f"mig-{profile}.count": str(count), f"mig-{profile}.replicas": str(shared_by)}
        labels |= {f"mig-{profile}.slices.gi": profile[0]}
        labels |= {f"mig-{profile}.sharing-strategy": "time-slicing" if shared_by > 1 else "none"}
    units = {f"nvidia.com/mig-{profile}": count * shared_by for profile, count in counts.items()}
    units |= {f"nvidia.com/{one.replace('_', '.')}": number for one, number in allocatable.items()}
    return NodeFacts(name, {f"nvidia.com/{key}": value for key, value in labels.items()}, (), {**units, "cpu": 64})


def on_gpus(counts: dict[str, int], gpus: int) -> dict[str, int]:
    return {profile: number * gpus for profile, number in counts.items()}


def by_partition(nodes: list[NodeFacts], devices: list[Device] | None = None) -> dict[str, ClassProposal]:
    found = discover(
        nodes, devices or [], {"mig.nvidia.com": "example.org/slices", "gpu.nvidia.com": "example.org/gpus"}
    )
    assert found.problems == ()
    return {one.partition: one for one in found.proposals if one.vendor}


def total(found: dict[str, ClassProposal]) -> Fraction:
    return sum((one.weight * one.units for one in found.values()), Fraction(0))


def weights_of(found: dict[str, ClassProposal]) -> dict[str, str]:
    assert {one.weight_note for one in found.values()} == {""}
    return {partition: str(one.weight) for partition, one in found.items()}


def test_the_slices_of_a_balanced_node_are_its_gpus() -> None:
    """The larger shares of each GPU add up to 15/14 of it."""
    found = by_partition([mig_node("n1", on_gpus(BALANCED, 8), gpus=8)])
    assert weights_of(found) == {"1g.10gb": "2/15", "2g.20gb": "4/15", "3g.40gb": "7/15"}
    assert total(found) == 8


@pytest.mark.parametrize(
    ("product", "memory_mib", "counts", "weights"),
    [
        ("NVIDIA-A30", 24576, {"1g.6gb": 4}, {"1g.6gb": "1/4"}),
        ("NVIDIA-A30", 24576, {"1g.6gb": 1, "1g.6gb.me": 1, "2g.12gb": 1}, None),
        ("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", 97887, {"1g.24gb": 4}, {"1g.24gb": "1/4"}),
        ("NVIDIA-A100-SXM4-40GB", 40960, {"1g.5gb": 6, "1g.10gb": 1}, {"1g.5gb": "4/31", "1g.10gb": "7/31"}),
        ("NVIDIA-H200", 143771, {"3g.71gb": 1, "4g.71gb": 1}, {"3g.71gb": "7/15", "4g.71gb": "8/15"}),
    ],
)
def test_the_slices_of_other_gpus(
    product: str, memory_mib: int, counts: dict[str, int], weights: dict[str, str] | None
) -> None:
    found = by_partition([mig_node("n1", on_gpus(counts, 2), gpus=2, product=product, memory_mib=memory_mib)])
    assert weights_of(found) == (weights or {"1g.6gb": "1/4", "1g.6gb.me": "1/4", "2g.12gb": "1/2"})
    assert total(found) == 2


def test_shares_of_slices_are_their_gpus_too() -> None:
    found = by_partition([mig_node("n1", on_gpus(BALANCED, 4), gpus=4, shared_by=4)])
    assert weights_of(found) == {"1g.10gb": "1/30", "2g.20gb": "1/15", "3g.40gb": "7/60"}
    assert total(found) == 4


@pytest.mark.parametrize(
    "others", [{"gpu": 2}, {"gpu": 0, "gpu_shared": 8}, {"gpu": 8}], ids=["whole", "shares", "shares as GPUs"]
)
def test_gpus_that_are_not_in_mig_mode_do_not_count(others: dict[str, int]) -> None:
    node = mig_node("n1", on_gpus(BALANCED, 2), gpus=4, **others)
    if max(others.values()) == 8:
        shared = {"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": "time-slicing"}
        node = NodeFacts("n1", {**node.labels, **shared}, (), node.allocatable)
    found = by_partition([node])
    assert total(found) == 4
    assert found["3g.40gb"].weight == Fraction(7, 15)


def test_what_is_left_of_a_gpu_belongs_to_no_slice() -> None:
    found = by_partition([mig_node("n1", {"2g.20gb": 12}, gpus=4)])
    assert weights_of(found) == {"2g.20gb": "2/7"}
    assert total(found) == Fraction(24, 7)


def test_nodes_with_one_layout_have_one_weight_whatever_their_number_of_gpus() -> None:
    nodes = [mig_node(f"n{gpus}", on_gpus(BALANCED, gpus), gpus=gpus) for gpus in (1, 2, 8)]
    found = by_partition(nodes)
    assert weights_of(found) == {"1g.10gb": "2/15", "2g.20gb": "4/15", "3g.40gb": "7/15"}
    assert total(found) == 11


def test_nodes_with_different_layouts_get_the_larger_share_and_the_proposal_says_so() -> None:
    nodes = [
        mig_node("n2", {"1g.10gb": 7}, gpus=1),
        mig_node("n1", BALANCED, gpus=1),
        mig_node("n3", {"1g.10gb": 7}, gpus=1),
    ]
    found = by_partition(nodes)
    assert {partition: str(one.weight) for partition, one in found.items()} == {
        "1g.10gb": "1/7",
        "2g.20gb": "4/15",
        "3g.40gb": "7/15",
    }
    assert {partition: one.weight_note for partition, one in found.items()} == {
        "1g.10gb": (
            "Weight 1/7 is not computed from the MIG layout: "
            "the nodes have different layouts, by which it would be 2/15 on n1; 1/7 on n2, n3."
        ),
        "2g.20gb": "",
        "3g.40gb": "",
    }


UNCLEAR = "Weight 1/7 is not computed from the MIG layout: the layout of n1 is unknown, or differs from GPU to GPU."


@pytest.mark.parametrize(
    "node",
    [
        mig_node("n1", BALANCED, gpus=None),
        mig_node("n1", {"1g.10gb": 3, "2g.20gb": 4, "3g.40gb": 1}, gpus=2),
        # More than one GPU holds: the labels are not of one moment.
        mig_node("n1", on_gpus(BALANCED, 2), gpus=1),
    ],
    ids=["number of GPUs not reported", "GPUs differ", "do not fit"],
)
def test_without_one_known_layout_it_is_the_larger_share_and_the_proposal_says_so(node: NodeFacts) -> None:
    found = by_partition([node, mig_node("n2", BALANCED, gpus=1)])
    assert (found["1g.10gb"].weight, found["1g.10gb"].weight_note) == (Fraction(1, 7), UNCLEAR)
    assert found["3g.40gb"].weight == Fraction(1, 2)


def test_the_profiles_of_an_unknown_gpu_are_not_known() -> None:
    found = by_partition([mig_node("n1", {"1g.99gb": 4}, gpus=1, product="NVIDIA-B400", memory_mib=300_000)])
    assert (found["1g.99gb"].weight, found["1g.99gb"].weight_note) == (Fraction(1, 7), UNCLEAR)


# ---- devices of a DRA driver -----------------------------------------------------------------------------------------


def claimed(profiles: list[tuple[str, str]], *, node: str = "n1") -> list[Device]:
    """MIG slices, each with the UUID of its GPU."""
    common = {"productName": "NVIDIA H100 80GB HBM3", "type": "mig"}
    return [
        Device("gpu.nvidia.com", node, {**common, "profile": profile} | ({"parentUUID": gpu} if gpu else {}), 9984)
        for profile, gpu in profiles
    ]


PLAIN = NodeFacts("n1", {}, (), {"cpu": 64, "memory": 256})


def test_claimed_slices_are_their_gpus() -> None:
    slices = [(profile, gpu) for gpu in ("GPU-1", "GPU-2") for profile in ("1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb")]
    whole = Device("gpu.nvidia.com", "n1", {"productName": "NVIDIA H100 80GB HBM3", "type": "gpu"}, 81559)
    found = by_partition([PLAIN], [*claimed(slices), whole])
    assert weights_of(found) == {"none": "1", "1g.10gb": "2/15", "2g.20gb": "4/15", "3g.40gb": "7/15"}
    assert total(found) == 3


@pytest.mark.parametrize(
    "slices",
    [
        [("1g.10gb", ""), ("3g.40gb", "")],
        # Every profile that the GPU could have: most exclude each other.
        [("1g.10gb", "GPU-1")] * 7 + [("3g.40gb", "GPU-1")] * 2,
    ],
    ids=["GPU not named", "partitions that exclude each other"],
)
def test_claimed_slices_without_a_layout_have_the_larger_share(slices: list[tuple[str, str]]) -> None:
    found = by_partition([PLAIN], claimed(slices))
    assert (found["1g.10gb"].weight, found["1g.10gb"].weight_note) == (Fraction(1, 7), UNCLEAR)
    assert found["3g.40gb"].weight == Fraction(1, 2)
