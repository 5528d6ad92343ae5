"""What the quota counts of a node, step by step."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from catalog.pool.damping import CountedUnits, SeenUnits, counted_now

TEN = datetime(2026, 11, 26, 10, 0, tzinfo=UTC)
FIVE = timedelta(minutes=5)


def at(minute: float) -> datetime:
    return TEN + timedelta(minutes=minute)


def seen(offered: int, used: int = 0, *, is_open: bool = True) -> SeenUnits:
    return SeenUnits(offered, used, is_open)


@pytest.mark.parametrize(
    ("steps", "counted"),
    [
        pytest.param([(0, seen(8))], 8, id="a new node counts at once"),
        pytest.param([(0, seen(2)), (1, seen(8))], 8, id="a rise counts at once"),
        pytest.param([(0, seen(8)), (1, seen(0)), (5.9, seen(0))], 8, id="a fall waits"),
        pytest.param([(0, seen(8)), (1, seen(0)), (6, seen(0))], 0, id="a fall that lasted counts"),
        pytest.param([(0, seen(8)), (1, seen(0)), (2, seen(8)), (6, seen(0))], 8, id="a plugin that restarts twice"),
        pytest.param([(0, seen(8)), (1, seen(0)), (4, seen(6)), (8.9, seen(6))], 8, id="another number starts anew"),
        pytest.param([(0, seen(8)), (1, seen(0)), (4, seen(6)), (9, seen(6))], 6, id="and counts after its minutes"),
        pytest.param([(0, seen(8)), (1, seen(0)), (2, seen(9))], 9, id="more than before ends the wait"),
        pytest.param([(0, seen(8)), (1, seen(8, is_open=False))], 0, id="a cordon counts at once"),
        pytest.param([(0, seen(8)), (1, seen(8, 3, is_open=False))], 3, id="what runs on a cordoned node stays"),
        pytest.param([(0, seen(8)), (1, seen(0)), (2, seen(0, 3, is_open=False))], 0, id="a cordon ends the wait"),
        pytest.param([(0, seen(8, is_open=False)), (1, seen(8))], 8, id="an uncordoned node counts at once"),
        pytest.param([(0, seen(8)), (1, seen(0, is_open=False)), (2, seen(0))], 0, id="the wait does not come back"),
    ],
)
def test_what_is_counted(steps: list[tuple[float, SeenUnits]], counted: int) -> None:
    found: CountedUnits | None = None
    for minute, units in steps:
        found = counted_now(found, units, delay=FIVE, now=at(minute), is_current=True)
    assert found is not None
    assert found.counted == counted
    assert found.reported == steps[-1][1].reported


def test_without_a_delay_a_fall_counts_at_once_also_without_news() -> None:
    before = CountedUnits(8, 8, TEN)
    found = counted_now(before, seen(2), delay=timedelta(0), now=at(1), is_current=False)
    assert (found.counted, found.since) == (2, at(1))


def test_a_fall_whose_time_has_come_waits_for_news_of_the_cluster() -> None:
    before = CountedUnits(8, 0, TEN)
    assert counted_now(before, seen(0), delay=FIVE, now=at(60), is_current=False) == before
    assert counted_now(before, seen(0), delay=FIVE, now=at(60), is_current=True).counted == 0


def test_nothing_is_written_while_nothing_changes() -> None:
    before = CountedUnits(8, 8, TEN)
    assert counted_now(before, seen(8), delay=FIVE, now=at(60), is_current=True) == before
    delayed = CountedUnits(8, 2, TEN)
    assert counted_now(delayed, seen(2), delay=FIVE, now=at(1), is_current=True) == delayed
