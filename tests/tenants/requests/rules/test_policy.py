"""When measured use justifies an increase: every bound, on both sides of it."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import pytest

from tenants.requests.rules.policy import (
    BOUND_RANGES,
    IncreaseBounds,
    IncreaseFacts,
    bounds_refusals,
    increase_justification,
    increase_refusal,
)

BOUNDS = IncreaseBounds()
USED = IncreaseFacts("A100", held=4, base=4, asked=6, days=30, peak=4, mean=3.2, seen_share=0.99, waited_share=0.25)


def test_what_was_used_and_waited_for_justifies_more() -> None:
    assert increase_refusal(USED, BOUNDS) is None
    assert increase_justification(USED) == (
        "Of 4 units, peak usage in the last 30 days was 4 and average usage 3.2, 25 % of the runs waited."
    )


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"base": 0, "held": 2}, "no current total"),
        ({"asked": 7}, "7 of A100 instead of 4 is an increase of more than 50 %. Up to 6 is within the limit"),
        # A temporary increase does not count as the total that grows.
        ({"asked": 6, "base": 2, "held": 4}, "6 of A100 instead of 2 is an increase of more than 50 %. Up to 3"),
        ({"asked": 9, "base": 8, "held": 8, "peak": 8, "mean": 8}, "A total of 9 of A100 exceeds the limit of 8"),
        ({"days": 93}, "93 days of A100 exceed the limit of 92"),
        ({"peak": 3.5}, "Peak usage of A100 in the last 30 days was 3.5 of 4, less than 90 %"),
        ({"mean": 1.99}, "Average usage of A100 in the last 30 days was 1.99 of 4, less than 50 %"),
        ({"seen_share": 0.799}, "measured during 79.9 % of the last 30 days, less than 80 %"),
        ({"waited_share": 0.0999}, "9.9 % of the runs on A100 waited over a minute"),
        ({"peak": None}, "is unknown"),
        ({"mean": None}, "is unknown"),
        ({"seen_share": None}, "measured during an unknown part"),
        ({"waited_share": None}, "started no runs on A100"),
    ],
)
def test_what_does_not(changes: dict[str, Any], sentence: str) -> None:
    refusal = increase_refusal(replace(USED, **changes), BOUNDS)
    assert refusal is not None
    assert refusal.code == "not_justified"
    assert sentence in refusal.message


@pytest.mark.parametrize(
    "changes",
    [
        {"asked": 4},  # the same units for a longer period
        {"asked": 2, "base": 1, "held": 1, "peak": 1, "mean": 1},  # one unit more is always within the limit
        {"asked": 8, "base": 6, "held": 6, "peak": 5.4, "mean": 3},
        {"days": 92},
        {"seen_share": 0.8},
        {"waited_share": 0.1},
    ],
)
def test_on_the_bound_is_within_it(changes: dict[str, Any]) -> None:
    assert increase_refusal(replace(USED, **changes), BOUNDS) is None


def test_a_share_on_the_bound_is_not_lost_to_rounding() -> None:
    assert increase_refusal(replace(USED, seen_share=0.29), replace(BOUNDS, seen_percent_min=29)) is None


def test_a_bound_of_nothing_asks_for_nothing() -> None:
    loose = replace(BOUNDS, waited_percent_min=0, mean_percent_min=0)
    assert increase_refusal(replace(USED, waited_share=None, mean=0), loose) is None
    # But without a measurement the rule still refuses.
    assert increase_refusal(replace(USED, mean=None), loose) is not None


ACTIVE = replace(BOUNDS, activity_percent_min=40)
MEASURED = replace(USED, activity=0.62, activity_seen_share=0.9)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"activity": 0.3999}, "Mean activity of the held GPUs of A100 in the last 30 days was 39.9 %, less than 40 %"),
        ({"activity": 0.0}, "was 0 %, less than 40 %"),
        (
            {"activity_seen_share": 0.799},
            "was measured for 79.9 % of what the team held in the last 30 days, less",
        ),
        ({"activity": None, "activity_seen_share": 0.0}, "is unknown: it was not measured"),
        ({"activity": None, "activity_seen_share": None}, "is unknown: it was not measured"),
        ({"activity_seen_share": None}, "is unknown: it was not measured"),
        # The other bounds hold too, and come first.
        ({"mean": 1.0, "activity": 0.1}, "Average usage of A100"),
    ],
)
def test_units_that_were_held_and_not_busy(changes: dict[str, Any], sentence: str) -> None:
    refusal = increase_refusal(replace(MEASURED, **changes), ACTIVE)
    assert refusal is not None
    assert refusal.code == "not_justified"
    assert sentence in refusal.message


@pytest.mark.parametrize("changes", [{}, {"activity": 0.4}, {"activity_seen_share": 0.8}])
def test_units_that_were_busy(changes: dict[str, Any]) -> None:
    assert increase_refusal(replace(MEASURED, **changes), ACTIVE) is None


def test_without_that_bound_activity_is_not_asked_for() -> None:
    for activity, seen in ((None, None), (0.0, 1.0), (0.9, 0.1)):
        assert increase_refusal(replace(USED, activity=activity, activity_seen_share=seen), BOUNDS) is None


def test_the_justification_names_the_activity_that_was_measured() -> None:
    assert increase_justification(MEASURED).endswith(
        "25 % of the runs waited; mean activity of its GPUs was 62 %, measured for 90 % of what it held."
    )


def test_what_is_shipped_is_possible() -> None:
    assert bounds_refusals(asdict(BOUNDS)) == {}
    assert set(BOUND_RANGES) == set(asdict(BOUNDS))


@pytest.mark.parametrize("field", list(BOUND_RANGES))
def test_each_bound_has_its_range(field: str) -> None:
    least, most, words = BOUND_RANGES[field]
    for value in (least - 1, most + 1, None, True, "5"):
        found = bounds_refusals(asdict(BOUNDS) | {field: value})
        assert list(found) == [field]
        assert found[field].field == field
        assert f"{words} must be a whole number from {least:,} to {most:,}" in found[field].message
    for value in (least, most):
        assert bounds_refusals(asdict(BOUNDS) | {field: value}) == {}
