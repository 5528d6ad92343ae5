"""What a MIG profile means on each GPU, and which part of the GPU it takes. Values from NVIDIA's MIG user guide."""

from __future__ import annotations

from fractions import Fraction

import pytest

from catalog.discovery import mig_profiles
from catalog.discovery.mig_placement import card_layout

A100_40, A100_80 = "NVIDIA-A100-SXM4-40GB", "NVIDIA-A100-SXM4-80GB"
RTX_PRO = "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition"


def card(product: str, memory_mib: int | None = None) -> mig_profiles.MigCard:
    found = mig_profiles.card_of(product, memory_mib)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("product", "memory_mib", "profile", "memory_slices"),
    [
        (A100_80, 81920, "1g.10gb", 1),
        (A100_40, 40960, "1g.10gb", 2),
        (A100_80, None, "1g.10gb", 1),
        ("NVIDIA-H100-NVL", 95830, "1g.24gb", 2),
        ("NVIDIA-H100-NVL", None, "3g.47gb", 4),
        ("NVIDIA-H200", 143771, "1g.35gb", 2),
        ("NVIDIA-H200", None, "3g.71gb", 4),
        ("NVIDIA-GH200-480GB", None, "1g.12gb", 1),
        ("NVIDIA-GB300", 284208, "1g.35gb", 1),
        ("NVIDIA-GB200", 189471, "7g.189gb", 8),
        ("NVIDIA-A30", 24576, "2g.12gb+me", 2),
        (A100_80, 81920, "1g.10gb.me", 1),
        (RTX_PRO, 97887, "1g.24gb.gfx", 1),
        (RTX_PRO, 97887, "1g.24gb+me.all", 1),
        (RTX_PRO, None, "2g.48gb-me", 2),
        (RTX_PRO, None, "4g.96gb+gfx", 4),
        ("NVIDIA-RTX-PRO-5000-Blackwell", None, "1g.24gb.me.all", 1),
        ("NVIDIA-RTX-PRO-4500-Blackwell", None, "2g.32gb", 2),
    ],
)
def test_a_name_means_what_the_gpu_makes_of_it(
    product: str, memory_mib: int | None, profile: str, memory_slices: int
) -> None:
    found = mig_profiles.profile_of(profile, card(product, memory_mib))
    assert found is not None
    assert found.memory == memory_slices


@pytest.mark.parametrize(
    ("product", "profile"),
    [
        (A100_80, "9g.99gb"),
        (A100_80, "1g.5gb"),
        (A100_80, "1g.10gb.gfx"),
        (A100_80, "1g.10gb+me.all"),
        (A100_80, "1g.10gb-me"),
        (A100_40, "1g.20gb"),
        ("NVIDIA-H200", "1g.10gb"),
        ("NVIDIA-A30", "7g.24gb"),
        (RTX_PRO, "7g.96gb"),
        (RTX_PRO, "3g.72gb"),
        (A100_80, "cpx_nps4"),
        (A100_80, ""),
    ],
)
def test_a_name_that_the_gpu_does_not_have_means_nothing(product: str, profile: str) -> None:
    assert mig_profiles.profile_of(profile, card(product)) is None
    assert mig_profiles.share_of(profile, card(product)) is None


@pytest.mark.parametrize(
    ("product", "profile", "share"),
    [
        (A100_80, "1g.10gb", Fraction(1, 7)),
        # Double memory: four of them fill the GPU.
        (A100_80, "1g.20gb", Fraction(1, 4)),
        (A100_40, "1g.10gb", Fraction(1, 4)),
        ("NVIDIA-H100-80GB-HBM3", "1g.20gb", Fraction(1, 4)),
        (A100_80, "2g.20gb", Fraction(2, 7)),
        (A100_80, "3g.40gb", Fraction(1, 2)),
        (A100_80, "4g.40gb", Fraction(4, 7)),
        (A100_80, "7g.80gb", Fraction(1)),
        # Four slices, not seven.
        ("NVIDIA-A30", "1g.6gb", Fraction(1, 4)),
        ("NVIDIA-A30", "2g.12gb.me", Fraction(1, 2)),
        ("NVIDIA-A30", "4g.24gb", Fraction(1)),
        (RTX_PRO, "1g.24gb.gfx", Fraction(1, 4)),
        (RTX_PRO, "2g.48gb", Fraction(1, 2)),
        ("NVIDIA-RTX-PRO-5000-Blackwell", "1g.24gb", Fraction(1, 2)),
    ],
)
def test_the_part_of_the_gpu_that_an_instance_takes(product: str, profile: str, share: Fraction) -> None:
    assert mig_profiles.share_of(profile, card(product)) == share


@pytest.mark.parametrize("product", [A100_40, A100_80, "NVIDIA-H100-NVL", "NVIDIA-H200", "NVIDIA-A30", RTX_PRO])
def test_as_many_equal_instances_as_the_guide_lists_fit(product: str) -> None:
    """`most` of the guide's tables agrees with the placements, and that many instances are no more than a GPU."""
    of = card(product)
    for (compute, memory, extra), profile in of.profiles.items():
        name = f"{compute}g.{round(memory * of.sizes[0] / of.memory_slices)}gb"
        name += extra if extra.startswith("-") else f"+{extra}" if extra else ""
        assert mig_profiles.profile_of(name, of) == profile
        assert card_layout(of, {name: profile.most}) is not None
        assert card_layout(of, {name: profile.most + 1}) is None
        assert (mig_profiles.share_of(name, of) or 2) * profile.most <= 1


@pytest.mark.parametrize(
    ("counts", "fits"),
    [
        ({"1g.24gb": 4}, True),
        ({"2g.48gb": 1, "1g.24gb": 2}, True),
        ({"2g.48gb+gfx": 1, "1g.24gb": 1, "1g.24gb-me": 1}, True),
        # All media engines in one instance leave none for the others.
        ({"1g.24gb+me.all": 1, "1g.24gb-me": 3}, True),
        ({"1g.24gb+me.all": 1, "1g.24gb": 1}, False),
        ({"2g.48gb+me.all": 1, "2g.48gb-me": 1}, True),
        ({"2g.48gb+me.all": 1, "1g.24gb+gfx": 1}, False),
        ({"1g.24gb+me": 1, "1g.24gb": 3}, True),
        ({"1g.24gb+me": 1, "1g.24gb+me.all": 1}, False),
        ({"1g.24gb": 5}, False),
    ],
)
def test_which_instances_an_rtx_pro_holds_together(counts: dict[str, int], fits: bool) -> None:
    assert (card_layout(card(RTX_PRO), counts) is not None) is fits


@pytest.mark.parametrize(
    ("product", "known"),
    [
        (A100_80, True),
        ("NVIDIA H100 80GB HBM3", True),
        (RTX_PRO, True),
        ("Tesla-T4", False),
        ("Tesla-V100-SXM2-32GB", False),
        ("NVIDIA-L40S", False),
        ("NVIDIA-A10G", False),
        ("NVIDIA-RTX-A6000", False),
        ("NVIDIA-RTX-6000-Ada-Generation", False),
        ("NVIDIA-GeForce-RTX-4090", False),
        ("NVIDIA-B400", None),
        ("NVIDIA-RTX-PRO-4000-Blackwell", None),
        ("", None),
    ],
)
def test_which_gpus_have_mig(product: str, known: bool | None) -> None:
    assert mig_profiles.has_mig(product) is known


def test_a_gpu_that_is_not_known_has_no_profiles() -> None:
    assert [mig_profiles.card_of(name) for name in ("NVIDIA-L40S", "", "NVIDIA-B400")] == [None] * 3


def test_newer_gpus_are_drawn_on_an_assumption() -> None:
    assert [card(name).is_assumed for name in ("NVIDIA-B200", "NVIDIA-H200", RTX_PRO)] == [True, False, False]
