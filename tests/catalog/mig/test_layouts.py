"""All layouts of each product against an enumeration place by place, and why a combination is none."""

from __future__ import annotations

import pytest

from catalog.discovery.mig_profiles import MigCard, MigProfile, card_of, profile_of
from catalog.mig.layouts import arrangements, full_layouts, layouts, misfit, profiles_of
from catalog.mig.profile_names import profile_names
from tests.catalog.mig.placement_tables import TABLES, placements


def of(product: str) -> tuple[MigCard, dict[str, MigProfile]]:
    card = card_of(product)
    assert card is not None
    names = profile_names(card)
    assert names is not None
    return card, names


# Product: placements, combinations of profiles, those that are full.
COUNTS = {
    "A30": (75, 19, 8),
    "NVIDIA-A100-SXM4-40GB": (2318, 127, 44),
    "NVIDIA-A100-SXM4-80GB": (2318, 127, 44),
    "NVIDIA-H100-80GB-HBM3": (2318, 127, 44),
    "NVIDIA-H100-NVL": (2318, 127, 44),
    "NVIDIA-H200": (2318, 127, 44),
    "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition": (716, 114, 64),
}


@pytest.mark.parametrize("product", TABLES)
def test_layouts_are_exactly_those_of_the_tables(product: str) -> None:
    placed, combinations, full = COUNTS[product]
    expected = set(placements(product))
    found = [tuple((box.start, box.profile) for box in one) for one in arrangements(*of(product))]
    assert set(found) == expected
    assert len(found) == len(expected) == placed
    every = layouts(*of(product))
    assert [profiles_of(one) for one in every] == sorted({tuple(sorted(name for _at, name in one)) for one in expected})
    assert len(every) == combinations
    assert all(tuple((box.start, box.profile) for box in one) in expected for one in every)
    assert len(full_layouts(*of(product))) == full


def test_names_of_profiles_mean_what_their_memory_says() -> None:
    """The table of names agrees with the reading of names on nodes."""
    for product in [
        *TABLES,
        "NVIDIA-B200",
        "NVIDIA-GB200",
        "NVIDIA-B300",
        "NVIDIA-GB300",
        "RTX PRO 5000",
        "RTX PRO 4500",
    ]:
        card, names = of(product)
        assert len(names) == len(card.profiles)
        assert all(profile_of(name, card) == shape for name, shape in names.items())


def test_names_that_are_not_published_are_unknown() -> None:
    card = card_of("NVIDIA-H100-80GB-HBM3", memory_mib=70_000)
    assert card is not None
    assert profile_names(card) is None


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ({"1g.10gb": 7}, ""),
        ({"4g.40gb": 1, "3g.40gb": 1}, ""),
        ({}, ""),
        (
            {"3g.40gb": 2, "1g.10gb": 1},
            "1g.10gb needs memory slices 0 or 1 or 2 or 3 or 4 or 5 or 6, and none of these places is free beside "
            "3g.40gb at 0–3 and 3g.40gb at 4–7.",
        ),
        (
            {"4g.40gb": 1, "2g.20gb": 2},
            "2g.20gb needs memory slices 0–1 or 2–3 or 4–5, and none of these places is free beside 4g.40gb at 0–3 and "
            "2g.20gb at 4–5.",
        ),
        ({"2g.20gb": 4}, "2g.20gb fits at most 3 × on one GPU."),
        ({"5g.10gb": 1}, "This GPU has no profile 5g.10gb. It has "),
    ],
)
def test_what_does_not_fit_is_said_with_the_place(counts: dict[str, int], sentence: str) -> None:
    found = misfit(*of("NVIDIA-H100-80GB-HBM3"), counts)
    assert found.startswith(sentence) if sentence.endswith("It has ") else found == sentence


def test_missing_media_engines_are_the_reason_only_if_there_is_a_place() -> None:
    found = misfit(*of("RTX PRO 6000"), {"1g.24gb+me.all": 1, "1g.24gb": 1})
    assert "too few media engines" in found


def test_every_combination_is_either_a_layout_or_has_a_reason() -> None:
    for product in ("A30", "NVIDIA-A100-SXM4-80GB"):
        card, names = of(product)
        known = {profiles_of(one) for one in layouts(card, names)}
        for first in names:
            for second in names:
                counts = {first: 1, second: 1} if first != second else {first: 2}
                combination = tuple(sorted([first, second]))
                assert (misfit(card, names, counts) == "") is (combination in known)
