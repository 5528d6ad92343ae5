"""The geometry of a promise curve: steps over time in, lines and areas out. x in percent, y in pixels.

It answers one question at a glance: does a decision ever exceed the allocation limit of a class? `before` is what is
allocated today, `after` the same with the decision; both are steps as tenants/grants/promises.py makes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from portal.ui.text import plural_form

TOP, BOTTOM = 6.0, 208.0
LEFT, RIGHT = 4.5, 99.5
GRID_LINES = 4
CLOSEST_TICKS = 11.0  # smallest distance of two dates, in percent of the width
CLOSEST_TICKS_NARROW = 22.0  # the same for a chart of half the page's width or less


class CurveStep(Protocol):
    """`units` are allocated from `at` until the next step."""

    @property
    def at(self) -> datetime: ...

    @property
    def units(self) -> int: ...


@dataclass(frozen=True)
class CurveLine:
    x1: float
    x2: float
    y1: float
    y2: float


@dataclass(frozen=True)
class CurveArea:
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class CurveMark:
    """A text at the edge of the chart: a date below it (x) or a number beside it (y)."""

    at: float
    text: str
    place: str = "middle"  # first, middle or last


@dataclass(frozen=True)
class PromiseCurve:
    before: tuple[CurveLine, ...]
    after: tuple[CurveLine, ...]
    held: tuple[CurveArea, ...]  # under `before`
    added: tuple[CurveArea, ...]  # between `before` and `after`
    over: tuple[CurveArea, ...]  # above the limit
    limit: CurveMark | None
    dates: tuple[CurveMark, ...]
    grid: tuple[CurveMark, ...]
    sentence: str


@dataclass(frozen=True)
class _Frame:
    start: datetime
    end: datetime
    top: int

    def x(self, at: datetime) -> float:
        part = (at - self.start) / (self.end - self.start)
        return round(LEFT + (RIGHT - LEFT) * min(1.0, max(0.0, part)), 3)

    def y(self, units: float) -> float:
        return round(BOTTOM - (BOTTOM - TOP) * units / self.top, 1)


def promise_curve(
    *,
    before: Sequence[CurveStep],
    after: Sequence[CurveStep],
    limit: int | None,
    start: datetime,
    end: datetime,
    unit: str,
    is_narrow: bool = False,
) -> PromiseCurve:
    """Both curves must begin at or before `start`. `limit` None: the capacity is unknown, and nothing is "over"."""
    instants = sorted({start, *(step.at for step in (*before, *after) if start < step.at < end)})
    ends = [*instants[1:], end]
    rows = [(a, b, _units(before, a), _units(after, a)) for a, b in zip(instants, ends, strict=True)]
    step = _grid_step(max(limit or 0, *(max(row[2:]) for row in rows), 1))
    frame = _Frame(start, end, step * GRID_LINES)
    return PromiseCurve(
        before=_lines(frame, [(a, b, units) for a, b, units, _ in rows]),
        after=_lines(frame, [(a, b, units) for a, b, _, units in rows]),
        held=tuple(_area(frame, a, b, 0, units) for a, b, units, _ in rows if units),
        added=tuple(_area(frame, a, b, old, new) for a, b, old, new in rows if new > old),
        over=tuple(_area(frame, a, b, limit, new) for a, b, _, new in rows if limit is not None and new > limit),
        limit=None if limit is None else CurveMark(frame.y(limit), f"limit {limit}"),
        dates=_dates(frame, instants, end, CLOSEST_TICKS_NARROW if is_narrow else CLOSEST_TICKS),
        grid=tuple(CurveMark(frame.y(step * number), str(step * number)) for number in range(GRID_LINES + 1)),
        sentence=_sentence(rows, limit, unit),
    )


def _units(steps: Sequence[CurveStep], at: datetime) -> int:
    return next((step.units for step in reversed(steps) if step.at <= at), 0)


def _grid_step(most: int) -> int:
    """A round number of units between grid lines: 1, 2, 4, 8, 10, 20, 40, 80, 100, …"""
    decade = 1
    while True:
        for factor in (1, 2, 4, 8):
            if factor * decade * GRID_LINES >= most:
                return factor * decade
        decade *= 10


def _lines(frame: _Frame, rows: list[tuple[datetime, datetime, int]]) -> tuple[CurveLine, ...]:
    """Horizontal lines, and vertical lines where the level changes."""
    found = []
    for index, (a, b, units) in enumerate(rows):
        if index and rows[index - 1][2] != units:
            found.append(CurveLine(frame.x(a), frame.x(a), frame.y(rows[index - 1][2]), frame.y(units)))
        found.append(CurveLine(frame.x(a), frame.x(b), frame.y(units), frame.y(units)))
    return tuple(found)


def _area(frame: _Frame, start: datetime, end: datetime, low: int, high: int) -> CurveArea:
    x, y = frame.x(start), frame.y(high)
    return CurveArea(x, y, round(frame.x(end) - x, 3), round(frame.y(low) - y, 1))


def _dates(frame: _Frame, instants: list[datetime], end: datetime, closest: float) -> tuple[CurveMark, ...]:
    """Always the first and the last day, and the changes between them whose text has enough space."""
    found = [CurveMark(frame.x(instants[0]), _day(instants[0]), "first")]
    for at in instants[1:]:
        x = frame.x(at)
        if x - found[-1].at >= closest and RIGHT - x >= closest:
            found.append(CurveMark(x, _day(at)))
    return (*found, CurveMark(RIGHT, _day(end), "last"))


def _day(at: datetime) -> str:
    return f"{at:%-d %b}"


def _sentence(rows: list[tuple[datetime, datetime, int, int]], limit: int | None, unit: str) -> str:
    most_before, most_after = max(row[2] for row in rows), max(row[3] for row in rows)
    text = f"At most {most_before} {plural_form(unit)} allocated before, {most_after} after"
    if limit is None:
        return f"{text}; allocation limit unknown."
    over = [row for row in rows if row[3] > limit]
    if not over:
        return f"{text}; allocation limit {limit}."
    worst = max(row[3] for row in over) - limit
    return f"{text}; allocation limit {limit}, exceeded by {worst} from {_day(over[0][0])} to {_day(over[-1][1])}."
