"""MIG slices on a GPU: which layouts exist, where the slices lie, and what is not drawn."""

from __future__ import annotations

from itertools import product

import pytest

from catalog.discovery import mig_placement, mig_profiles

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
