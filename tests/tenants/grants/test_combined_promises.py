"""Several requests for one class: what they promise together, when that is too much, and which of them conflict."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

from tenants.grants import combined_promises, promises
from tenants.grants.combined_promises import Conflict
from tenants.grants.promises import ExcessInterval, Promise, Step

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def day(number: int) -> datetime:
    return NOW + timedelta(days=number)


def promise(units: int, start: int, end: int) -> Promise:
    return Promise(units, day(start), day(end))


def test_a_new_total_adds_itself_and_takes_away_the_running_one() -> None:
    running, later = promise(4, -3, 20), promise(9, 30, 40)
    assert combined_promises.promise_change(promise(6, 2, 10), replaced=[running, later]) == (
        promise(6, 2, 10),
        promise(-4, 2, 20),
    )
    assert combined_promises.promise_change(promise(6, 2, 10)) == (promise(6, 2, 10),)


def test_a_renewal_begins_where_the_running_total_ends() -> None:
    totals = [promise(4, -3, 20), promise(9, 30, 40)]
    assert [combined_promises.total_at(totals, day(number)) for number in (0, 20, 25, 30, 35, 41)] == [4, 4, 0, 9, 9, 0]


def test_the_curve_after_has_what_is_promised_and_what_changes() -> None:
    before = [Step(day(0), 10), Step(day(5), 6)]
    found = combined_promises.curve_with(before, [promise(3, 2, 7)], day(0), day(9))
    assert found == [Step(day(0), 10), Step(day(2), 13), Step(day(5), 9), Step(day(7), 6)]
    assert combined_promises.curve_with(before, [], day(0), day(3)) == [Step(day(0), 10)]


def test_over_is_where_the_change_makes_it_more_than_the_limit() -> None:
    before = [Step(day(0), 10), Step(day(5), 6), Step(day(8), 7)]
    assert combined_promises.excess_intervals(before, [promise(3, 2, 12)], 8) == [ExcessInterval(day(2), day(12), 5)]
    assert combined_promises.excess_intervals(before, [promise(3, 2, 12)], 9) == [
        ExcessInterval(day(2), day(5), 4),
        ExcessInterval(day(8), day(12), 1),
    ]
    # The limit is exceeded already, and the change lowers the total: no excess is reported.
    assert combined_promises.excess_intervals(before, [promise(2, 0, 9), promise(-3, 0, 9)], 8) == []
    assert combined_promises.excess_intervals(before, [], 8) == []


def test_over_agrees_with_the_sweep_that_decisions_are_refused_by() -> None:
    chance = random.Random(7)
    seen = set()
    for _ in range(400):
        grants = [
            promise(chance.randint(1, 5), start, start + chance.randint(1, 9))
            for start in (chance.randint(-4, 12) for _ in range(chance.randint(0, 6)))
        ]
        own = promise(chance.randint(1, 5), -5, chance.randint(1, 9))
        asked = promise(chance.randint(0, 9), chance.randint(0, 4), chance.randint(5, 14))
        limit = chance.randint(0, 14)
        before = [*grants, own]
        after = [*grants, Promise(own.units, own.start, min(own.end, asked.start)), asked]
        steps = promises.curve(before, NOW, day(40))
        found = combined_promises.excess_intervals(
            steps, combined_promises.promise_change(asked, replaced=[own]), limit
        )
        expected = promises.adds_excess(before, after, limit, asked.start, asked.end)
        assert max((one.units for one in found), default=0) == expected
        seen.add(bool(expected))
    assert seen == {True, False}


def test_requests_that_fit_one_by_one_and_not_together_are_rivals() -> None:
    before = [Step(day(0), 4)]
    changes = {
        12: combined_promises.promise_change(promise(3, 0, 10)),
        14: combined_promises.promise_change(promise(2, 5, 20)),
        15: combined_promises.promise_change(promise(2, 30, 40)),  # later than the others
        16: combined_promises.promise_change(promise(9, 0, 10)),  # too much alone
        17: combined_promises.promise_change(promise(1, 0, 40), replaced=[promise(2, -5, 50)]),  # takes less than now
    }
    found = combined_promises.find_conflicts(before, changes, 7)
    assert found == {12: Conflict((12, 14), 1, day(5)), 14: Conflict((12, 14), 1, day(5))}
    assert combined_promises.find_conflicts(before, changes, 20) == {}
    assert combined_promises.find_conflicts(before, {12: changes[12]}, 7) == {}
