"""Weights of slices: what four stored digits stand for, and that the units of full GPUs are as many GPUs."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest

from catalog.classes.capacity import weights
from catalog.classes.proposals.actions import class_values
from catalog.discovery import mig_placement
from catalog.discovery.types import ClassProposal
from tests.support.cluster.mig_layouts import PRODUCTS, layouts_of

A100, A30 = "NVIDIA-A100-SXM4-80GB", "NVIDIA-A30"


def stored(weight: Fraction) -> Decimal:
    """The weight of the class that is created from a proposal."""
    proposal = ClassProposal("one", "One", "nvidia", A100, "nvidia.com/gpu", {}, weight=weight)
    found = class_values(proposal)["weight"]
    assert isinstance(found, Decimal)
    return found


@pytest.mark.parametrize("replicas", [1, 4])
@pytest.mark.parametrize("product", PRODUCTS)
def test_units_of_a_full_gpu_are_one_gpu_as_stored_and_as_evidence(product: str, replicas: int) -> None:
    checked = 0
    for of in layouts_of(product):
        for counts in of.full:
            fractions = mig_placement.fractions_by_layout(of.card, counts) or {}
            kept = {profile: stored(fraction / replicas) for profile, fraction in fractions.items()}
            exact = {profile: weights.exact_weight(weight, replicas) for profile, weight in kept.items()}
            assert exact == {profile: fraction / replicas for profile, fraction in fractions.items()}
            physical = {
                profile: weights.physical_share(product=product, partition=profile, replicas=replicas, weight=weight)
                for profile, weight in kept.items()
            }
            assert physical == exact
            digits = {profile: Fraction(weights.exact_digits(weight, replicas)) for profile, weight in kept.items()}
            for each in (exact, physical, digits):
                total = sum(each[profile] * number * replicas for profile, number in counts.items())
                assert abs(total - 1) <= Fraction(1, 10**9)
                checked += 1
    assert checked >= 3


@pytest.mark.parametrize(
    ("weight", "replicas", "exact"),
    [
        ("0.1429", 1, "1/7"),
        ("0.1333", 1, "2/15"),
        ("0.2333", 1, "7/30"),
        ("0.1290", 1, "4/31"),
        ("0.5161", 1, "16/31"),
        ("0.2759", 1, "8/29"),
        ("0.0333", 4, "1/30"),
        # Nothing that discovery proposes.
        ("0.1300", 1, "13/100"),
        ("0.1356", 1, "339/2500"),
        ("0.33", 1, "33/100"),
        ("2.5", 1, "5/2"),
        ("0", 1, "0"),
    ],
)
def test_what_stored_digits_stand_for(weight: str, replicas: int, exact: str) -> None:
    assert weights.exact_weight(Decimal(weight), replicas) == Fraction(exact)


def test_the_digits_of_a_run_are_those_of_the_exact_weight() -> None:
    found = [weights.exact_digits(Decimal(weight), 1) for weight in ("0.1429", "1.0000", "0", "0.15")]
    assert found == ["0.142857142857", "1.000000000000", "0.000000000000", "0.150000000000"]


@pytest.mark.parametrize(
    ("product", "partition", "weight", "share"),
    [
        # By a layout.
        (A100, "3g.40gb", "0.4667", "7/15"),
        (A100, "1g.20gb", "0.2258", "7/31"),
        # Weights that no layout gives these profiles: the most that the slice takes.
        (A100, "3g.40gb", "0.4286", "1/2"),
        (A100, "3g.40gb", "0.1333", "1/2"),
        (A100, "1g.10gb", "1", "1/7"),
        # The slices of this GPU divide alike.
        (A30, "1g.6gb", "0.2333", "1/4"),
    ],
)
def test_the_part_of_a_gpu_is_the_weight_only_if_a_layout_gives_it(
    product: str, partition: str, weight: str, share: str
) -> None:
    found = weights.physical_share(product=product, partition=partition, replicas=1, weight=Decimal(weight))
    assert found == Fraction(share)


@pytest.mark.parametrize(
    ("product", "partition", "replicas", "most"),
    [
        (A100, "none", 1, 1),
        (A100, "none", 4, 4),
        (A100, "1g.10gb", 1, 7),
        (A100, "2g.20gb", 1, 3),
        (A100, "2g.20gb", 4, 12),
        (A100, "4g.40gb", 1, 1),
        (A30, "1g.6gb", 1, 4),
        ("NVIDIA-B400", "1g.10gb", 1, None),
        ("AMD Instinct MI300X", "cpx_nps4", 1, None),
    ],
)
def test_the_most_units_of_one_gpu(product: str, partition: str, replicas: int, most: int | None) -> None:
    assert weights.most_on_a_gpu(product=product, partition=partition, replicas=replicas) == most
