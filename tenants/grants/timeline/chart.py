"""The chart of a class's grants: one bar per grant, in percent of the time shown. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tenants.grants.timeline.types import GrantRow

BAR_PX = 22


@dataclass(frozen=True)
class TimelineBar:
    """A grant in the chart of its class: its start and its length, in percent of the chart's time."""

    row: GrantRow
    x: float
    width: float
    y: int


@dataclass(frozen=True)
class ClassTimeline:
    """One class with its grants by start, drawn from `start` to `end`."""

    slug: str
    name: str
    unit: str
    rows: tuple[GrantRow, ...]
    bars: tuple[TimelineBar, ...]
    start: datetime
    end: datetime
    now_x: float

    @property
    def height(self) -> int:
        return BAR_PX * len(self.bars)


def class_timelines(rows: list[GrantRow], *, at: datetime) -> list[ClassTimeline]:
    """Returns one chart per class, all over the same time."""
    if not rows:
        return []
    start = min(at, *(row.starts for row in rows))
    end = max(row.runs_until for row in rows)
    span = (end - start).total_seconds()

    def x(moment: datetime) -> float:
        return round(100 * (moment - start).total_seconds() / span, 2)

    found: dict[str, list[GrantRow]] = {}
    for row in rows:
        found.setdefault(row.slug, []).append(row)
    return [
        ClassTimeline(
            slug=slug,
            name=own[0].name,
            unit=own[0].unit,
            rows=tuple(own),
            bars=tuple(
                TimelineBar(row, x(row.starts), round(x(row.ends) - x(row.starts), 2), number * BAR_PX)
                for number, row in enumerate(own)
            ),
            start=start,
            end=end,
            now_x=x(at),
        )
        for slug, own in found.items()
    ]
