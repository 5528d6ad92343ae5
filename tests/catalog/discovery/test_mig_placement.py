"""MIG slices on a GPU: which layouts exist, where the slices lie, and what is not drawn."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest

from catalog.discovery import mig_placement, mig_profiles
from tests.support.cluster.mig_layouts import PRODUCTS, has_media, layouts_of, names_of

A100 = mig_profiles.card_of("NVIDIA-A100-SXM4-80GB")
A30 = mig_profiles.card_of("NVIDIA-A30")
assert A100 is not None
assert A30 is not None
PROFILES_8 = {"1g.10gb": 7, "1g.10gb.me": 1, "1g.20gb": 4, "2g.20gb": 3, "3g.40gb": 2, "4g.40gb": 1, "7g.80gb": 1}
PROFILES_4 = {"1g.6gb": 4, "1g.6gb.me": 1, "2g.12gb": 2, "2g.12gb.me": 1, "4g.24gb": 1}


def feasible(card: mig_profiles.MigCard, profiles: dict[str, int]) -> list[dict[str, int]]:
    """Returns every multiset of profiles that has a layout; tries one more of each than fits on a GPU."""
    ranges = [range(most + 2) for most in profiles.values()]
    all_counts = (dict(zip(profiles, numbers, strict=True)) for numbers in product(*ranges))
    return [counts for counts in all_counts if mig_placement.card_layout(card, counts) is not None]


@pytest.mark.parametrize(
    ("card", "profiles", "all_layouts", "without_media"), [(A100, PROFILES_8, 128, 78), (A30, PROFILES_4, 20, 10)]
)
def test_exactly_the_layouts_that_the_hardware_has(
    card: mig_profiles.MigCard, profiles: dict[str, int], all_layouts: int, without_media: int
) -> None:
    found = feasible(card, profiles)
    assert len(found) == all_layouts
    assert sum(1 for counts in found if not any(n for name, n in counts.items() if name.endswith(".me"))) == (
        without_media
    )


def test_no_layout_uses_a_slice_twice_or_more_compute_than_there_is() -> None:
    for card, profiles in ((A100, PROFILES_8), (A30, PROFILES_4)):
        for counts in feasible(card, profiles):
            boxes = mig_placement.card_layout(card, counts) or ()
            held = [slice_ for box in boxes for slice_ in range(box.start, box.start + box.memory)]
            assert len(held) == len(set(held))
            assert max(held, default=0) < card.memory_slices
            assert sum(box.compute for box in boxes) <= card.compute_slices


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}, [("2g.20gb", 0), ("1g.10gb", 2), ("1g.10gb", 3), ("3g.40gb", 4)]),
        ({"2g.20gb": 3, "1g.10gb": 1}, [("2g.20gb", 0), ("2g.20gb", 2), ("2g.20gb", 4), ("1g.10gb", 6)]),
        ({"4g.40gb": 1, "3g.40gb": 1}, [("4g.40gb", 0), ("3g.40gb", 4)]),
        ({"3g.40gb": 2, "1g.10gb": 1}, None),
        ({"4g.40gb": 1, "2g.20gb": 2}, None),
        ({"7g.80gb": 1, "1g.10gb": 1}, None),
        ({"1g.10gb": 1, "1g.10gb.me": 2}, None),
    ],
)
def test_where_slices_lie(counts: dict[str, int], expected: list[tuple[str, int]] | None) -> None:
    found = mig_placement.card_layout(A100, counts)
    assert (found and [(box.profile, box.start) for box in found]) == expected


@pytest.mark.parametrize("profile", ["1g.24gb.gfx", "1g.24gb.me.all", "1g.24gb-me", "5g.60gb", "cpx_nps4", ""])
def test_an_unknown_name_is_not_drawn(profile: str) -> None:
    assert mig_placement.card_layout(A100, {"1g.10gb": 1, profile: 1}) is None
    assert mig_placement.node_layout(A100, {"1g.10gb": 1, profile: 1}, 2) is None


def test_slices_of_a_node_are_spread_over_its_cards() -> None:
    """The simulated node: 4 GPUs, one of them with the media engines."""
    found = mig_placement.node_layout(A100, {"1g.10gb": 7, "1g.10gb.me": 1, "2g.20gb": 4, "3g.40gb": 4}, 4)
    assert found is not None
    assert sorted("+".join(sorted(box.profile for box in boxes)) for boxes in found) == [
        "1g.10gb+1g.10gb+2g.20gb+3g.40gb",
        "1g.10gb+1g.10gb+2g.20gb+3g.40gb",
        "1g.10gb+1g.10gb+2g.20gb+3g.40gb",
        "1g.10gb+1g.10gb.me+2g.20gb+3g.40gb",
    ]


def test_what_does_not_fit_on_a_node_is_not_drawn() -> None:
    assert mig_placement.node_layout(A100, {"3g.40gb": 5}, 2) is None


def test_slices_that_nobody_made_are_free() -> None:
    boxes = mig_placement.card_layout(A100, {"3g.40gb": 1})
    assert boxes is not None
    assert mig_placement.free_slices(A100, boxes) == (4, 5, 6, 7)


# ---- parts of a GPU --------------------------------------------------------------------------------------------------


def test_the_products_are_those_of_the_table() -> None:
    """A GPU that is added to the table needs a line in `PRODUCTS`."""
    missing = [pattern for pattern, _, _ in mig_profiles._CARDS if not any(map(pattern.search, _words()))]
    assert missing == []
    sizes = {size for name in PRODUCTS for one in layouts_of(name) for size in one.card.sizes}
    assert {size for _, _, sold in mig_profiles._CARDS for size in sold} <= sizes


def _words() -> list[str]:
    return [name.replace("-", " ") for name in PRODUCTS]


@pytest.mark.parametrize("name", PRODUCTS)
def test_how_many_layouts_a_gpu_has(name: str) -> None:
    """Without variants for media, none at all included, and how many of these are full: 28 from 7 × 1g to 7g of the
    GPUs with eight memory slices; 4 × 1g, 2 × 1g + 2g, 2 × 2g and 4g of those with four; 2 × 1g and 2g of those with
    two.
    """
    counted = {8: (78, 28), 4: (10, 4), 2: (4, 2)}
    for one in layouts_of(name):
        plain = [counts for counts in one.layouts if not has_media(counts)]
        assert all(mig_profiles.profile_of(profile, one.card) for profile in names_of(one.card))
        full = [counts for counts in one.full if not has_media(counts)]
        assert (len(plain), len(full)) == counted[one.card.memory_slices]
        if one.card.memory_slices == 8:
            assert len(one.layouts) == 128
        elif name == "NVIDIA-A30":
            assert len(one.layouts) == 20


@pytest.mark.parametrize("name", PRODUCTS)
def test_the_instances_of_a_full_gpu_are_exactly_one_gpu(name: str) -> None:
    for one in layouts_of(name):
        for counts in one.layouts:
            fractions = mig_placement.fractions_by_layout(one.card, counts)
            assert fractions is not None, counts
            total = sum((fractions[profile] * number for profile, number in counts.items()), Fraction(0))
            shares = {profile: mig_profiles.share_of(profile, one.card) for profile in counts}
            assert all(0 < fractions[profile] <= (share or 0) for profile, share in shares.items())
            if counts in one.full:
                assert total == 1, counts
            else:
                # The rest belongs to none.
                assert total < 1, counts
                assert fractions == shares


@pytest.mark.parametrize("name", PRODUCTS)
def test_what_the_shares_of_a_full_gpu_add_up_to(name: str) -> None:
    for one in layouts_of(name):
        shares = {profile: mig_profiles.share_of(profile, one.card) or Fraction(0) for profile in names_of(one.card)}
        sums = {sum(shares[profile] * number for profile, number in counts.items()) for counts in one.full}
        assert sums == set(one.card.full_sums)


@pytest.mark.parametrize("name", ["NVIDIA-A30", "NVIDIA-A100-SXM4-80GB", "NVIDIA-RTX-PRO-5000-Blackwell"])
@pytest.mark.parametrize("cards", [2, 4, 8])
def test_several_gpus_with_one_layout_are_like_one(name: str, cards: int) -> None:
    (of,) = layouts_of(name)
    for counts in of.layouts:
        several = {profile: number * cards for profile, number in counts.items()}
        assert mig_placement.fractions_by_layout(of.card, several, cards) == mig_placement.fractions_by_layout(
            of.card, counts
        )


@pytest.mark.parametrize(
    ("counts", "cards", "fractions"),
    [
        # More than one: seven compute and eight memory slices do not divide alike.
        ({"3g.40gb": 1, "4g.40gb": 1}, 1, {"3g.40gb": "7/15", "4g.40gb": "8/15"}),
        ({"1g.10gb": 6, "1g.20gb": 1}, 1, {"1g.10gb": "4/31", "1g.20gb": "7/31"}),
        ({"1g.20gb": 3, "2g.20gb": 1}, 1, {"1g.20gb": "7/29", "2g.20gb": "8/29"}),
        ({"1g.10gb": 7}, 1, {"1g.10gb": "1/7"}),
        ({"3g.40gb": 2}, 1, {"3g.40gb": "1/2"}),
        # Not full.
        ({"3g.40gb": 1, "4g.40gb": 1}, 2, {"3g.40gb": "1/2", "4g.40gb": "4/7"}),
        ({"1g.10gb": 8}, 2, {"1g.10gb": "1/7"}),
        # The GPUs differ, and none is more than a GPU.
        ({"1g.10gb": 7, "7g.80gb": 1}, 2, {"1g.10gb": "1/7", "7g.80gb": "1"}),
        # The slices may be one GPU of 1g and one of 3g, or mixed on both: on which GPU they are is not reported.
        ({"1g.10gb": 7, "3g.40gb": 2}, 2, None),
        # The GPUs differ: 2g is 2/7 on one, and 4/15 on the other.
        ({"1g.10gb": 3, "2g.20gb": 4, "3g.40gb": 1}, 2, None),
        # A whole GPU beside one in which 4g and 3g are more than a GPU.
        ({"3g.40gb": 1, "4g.40gb": 1, "7g.80gb": 1}, 2, None),
        # They do not fit.
        ({"3g.40gb": 3}, 1, None),
        ({"1g.10gb": 1}, 0, None),
        ({"1g.10gb": 1, "cpx": 1}, 1, None),
    ],
)
def test_fractions_of_a_node(counts: dict[str, int], cards: int, fractions: dict[str, str] | None) -> None:
    assert A100 is not None
    expected = None if fractions is None else {name: Fraction(text) for name, text in fractions.items()}
    assert mig_placement.fractions_by_layout(A100, counts, cards) == expected
