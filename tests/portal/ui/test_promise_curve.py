"""Geometry of the promise curve: when is more promised than there is?"""

from dataclasses import dataclass
from datetime import UTC, datetime

from portal.ui.promise_curve import BOTTOM, LEFT, RIGHT, TOP, CurveArea, promise_curve


@dataclass(frozen=True)
class Step:
    at: datetime
    units: int


def day(number: int) -> datetime:
    return datetime(2026, 12, number, tzinfo=UTC)


START, END = day(1), day(31)


def test_what_goes_over_the_limit_is_drawn_and_said() -> None:
    curve = promise_curve(
        before=[Step(START, 32)],
        after=[Step(START, 32), Step(day(11), 36), Step(day(21), 32)],
        limit=32,
        start=START,
        end=END,
        unit="GPU",
    )

    third = (RIGHT - LEFT) / 3
    [over] = curve.over
    assert (round(over.x, 1), round(over.width, 1)) == (round(LEFT + third, 1), round(third, 1))
    assert (
        curve.sentence == "At most 32 GPUs promised before, 36 after, of a limit of 32: 4 over, from 11 Dec to 21 Dec."
    )


def test_within_the_limit_nothing_is_over() -> None:
    curve = promise_curve(before=[Step(START, 2)], after=[Step(START, 6)], limit=8, start=START, end=END, unit="GPU")
    assert curve.over == ()
    assert curve.added == (CurveArea(LEFT, curve.after[0].y1, RIGHT - LEFT, curve.before[0].y1 - curve.after[0].y1),)
    assert curve.sentence == "At most 2 GPUs promised before, 6 after, of a limit of 8."


def test_an_unknown_limit_is_said_and_not_drawn() -> None:
    curve = promise_curve(before=[], after=[Step(START, 6)], limit=None, start=START, end=END, unit="share")
    assert curve.limit is None
    assert curve.over == ()
    assert "not known" in curve.sentence


def test_the_grid_reaches_from_nothing_to_above_everything() -> None:
    curve = promise_curve(before=[], after=[Step(START, 33)], limit=32, start=START, end=END, unit="GPU")
    assert (curve.grid[0].at, curve.grid[0].text) == (BOTTOM, "0")
    assert (curve.grid[-1].at, curve.grid[-1].text) == (TOP, "40")


def test_dates_that_would_overlap_are_left_out() -> None:
    steps = [Step(START, 1), Step(day(2), 2), Step(day(3), 3), Step(day(15), 4)]
    curve = promise_curve(before=[], after=steps, limit=8, start=START, end=END, unit="GPU")
    assert [mark.text for mark in curve.dates] == ["1 Dec", "15 Dec", "31 Dec"]


def test_a_narrow_chart_has_room_for_fewer_dates() -> None:
    steps = [Step(START, 1), Step(day(6), 2), Step(day(15), 4), Step(day(26), 1)]
    drawn = {"before": [], "after": steps, "limit": 8, "start": START, "end": END, "unit": "GPU"}
    wide, narrow = promise_curve(**drawn), promise_curve(**drawn, is_narrow=True)  # type: ignore[arg-type]
    assert [mark.text for mark in wide.dates] == ["1 Dec", "6 Dec", "15 Dec", "26 Dec", "31 Dec"]
    assert [mark.text for mark in narrow.dates] == ["1 Dec", "15 Dec", "31 Dec"]
    assert narrow.sentence == wide.sentence
