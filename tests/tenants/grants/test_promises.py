"""The sweep over promises, as tables: intervals are the input, steps and excesses are the output."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenants.grants.promises import (
    ExcessInterval,
    Promise,
    Step,
    adds_excess,
    curve,
    excesses,
    in_force,
    keepable_units,
    peak,
)

DAY = timedelta(days=1)
START = datetime(2026, 1, 1, tzinfo=UTC)


def day(number: float) -> datetime:
    return START + number * DAY


def promise(units: int, start: float, end: float) -> Promise:
    return Promise(units, day(start), day(end))


TWO_AND_A_BOOST = [promise(4, 0, 10), promise(2, 3, 5), promise(8, 10, 20)]


@pytest.mark.parametrize(("at", "units"), [(-1, 0), (0, 4), (2.9, 4), (3, 6), (4.9, 6), (5, 4), (10, 8), (20, 0)])
def test_a_promise_counts_from_its_start_and_no_longer_at_its_end(at: float, units: int) -> None:
    assert in_force(TWO_AND_A_BOOST, day(at)) == units


def graced(units: int, start: float, end: float, grace: float = 1) -> Promise:
    return Promise(units, day(start), day(end), grace * DAY)


@pytest.mark.parametrize(
    ("promises", "at", "units"),
    [
        ([graced(4, 0, 10)], 9.9, 4),
        ([graced(4, 0, 10)], 10, 4),
        ([graced(4, 0, 10)], 10.9, 4),
        ([graced(4, 0, 10)], 11, 0),
        ([graced(4, 0, 10, grace=0)], 10, 0),
        ([graced(4, 0, 10), graced(4, 10, 20)], 10.5, 4),
        ([graced(4, 0, 10), graced(1, 10, 20)], 10.5, 4),
        ([graced(4, 0, 10), graced(1, 10, 20)], 11, 1),
        ([graced(4, 0, 10), graced(6, 10, 20)], 10.5, 6),
        ([graced(4, 0, 20), graced(2, 5, 10)], 10.5, 6),
        ([graced(4, 0, 10), graced(2, 10, 10.5)], 10.7, 4),
        ([graced(4, 0, 10), graced(2, 10, 10.5)], 11.2, 2),
        ([graced(4, 5, 10)], 4, 0),
        ([], 4, 0),
    ],
)
def test_what_runs_may_hold_what_was_in_force_before_the_end_while_its_grace_lasts(
    promises: list[Promise], at: float, units: int
) -> None:
    assert keepable_units(promises, day(at)) == units


def test_the_curve_begins_at_its_start_and_joins_equal_steps() -> None:
    assert curve(TWO_AND_A_BOOST, day(1), day(12)) == [
        Step(day(1), 4),
        Step(day(3), 6),
        Step(day(5), 4),
        Step(day(10), 8),
    ]
    assert curve([promise(4, 0, 5), promise(4, 5, 9)], day(0), day(9)) == [Step(day(0), 4)]
    assert curve([], day(0), day(1)) == [Step(day(0), 0)]


def test_excesses_are_where_the_curve_lies_above_the_limit() -> None:
    assert excesses(TWO_AND_A_BOOST, 5, day(0), day(30)) == [
        ExcessInterval(day(3), day(5), 1),
        ExcessInterval(day(10), day(20), 3),
    ]
    assert excesses(TWO_AND_A_BOOST, 8, day(0), day(30)) == []


def test_neighbouring_excesses_are_one_with_the_worst_of_both() -> None:
    steps = [promise(6, 0, 5), promise(9, 5, 10)]
    assert excesses(steps, 5, day(0), day(10)) == [ExcessInterval(day(0), day(10), 4)]


@pytest.mark.parametrize(
    ("before", "after", "limit", "units"),
    [
        pytest.param([], [promise(4, 0, 5)], 4, 0, id="fits exactly"),
        pytest.param([], [promise(5, 0, 5)], 4, 1, id="one too many"),
        pytest.param([promise(3, 2, 3)], [promise(3, 2, 3), promise(2, 0, 5)], 4, 1, id="only for a day in the middle"),
        pytest.param([promise(9, 0, 5)], [promise(8, 0, 5)], 4, 0, id="less than before, though still too many"),
        pytest.param([promise(9, 0, 5)], [promise(9, 0, 6)], 4, 5, id="as many, but longer"),
        pytest.param([promise(2, 0, 9)], [promise(2, 0, 1), promise(6, 1, 9)], 6, 0, id="a new total replaces"),
    ],
)
def test_a_decision_over_promises_where_it_makes_an_instant_worse(
    before: list[Promise], after: list[Promise], limit: int, units: int
) -> None:
    assert adds_excess(before, after, limit, day(0), day(10)) == units


promise_lists = st.lists(st.builds(promise, st.integers(0, 20), st.integers(0, 20), st.integers(21, 40)), max_size=8)


# How fast Hypothesis generates examples depends only on the load of the machine.
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(promise_lists, st.integers(0, 30))
def test_curve_peak_and_sum_agree_at_every_instant(promises: list[Promise], limit: int) -> None:
    steps = curve(promises, day(0), day(45))
    assert all(step.units == in_force(promises, step.at) for step in steps)
    assert peak(promises, day(0), day(45)) == max(in_force(promises, day(hour / 2)) for hour in range(90))
    over = excesses(promises, limit, day(0), day(45))
    assert bool(over) == (peak(promises, day(0), day(45)) > limit)
    assert all(in_force(promises, one.start) > limit for one in over)
