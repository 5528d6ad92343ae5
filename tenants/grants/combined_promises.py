"""What several requests allocate together. Pure: today's allocation as steps, each request's change as intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from tenants.grants.promises import ExcessInterval, Promise, Step, curve

# A change can also remove units: these intervals have units below 0.
Change = tuple[Promise, ...]


@dataclass(frozen=True)
class Conflict:
    """`requests` fit one by one but not together: from `start` on they exceed the limit by `units`."""

    requests: tuple[int, ...]
    units: int
    start: datetime


def promise_change(asked: Promise, *, replaced: Iterable[Promise] = ()) -> Change:
    """Returns what an approval adds and removes. `replaced`: the team's own totals; a new one ends the running one."""
    ended = (Promise(-one.units, asked.start, one.end) for one in replaced if one.start < asked.start < one.end)
    return (asked, *ended)


def total_at(totals: Iterable[Promise], at: datetime) -> int:
    """Returns the team's total at that instant, or the one that ends exactly then: a renewal starts where it ends."""
    return max((one.units for one in totals if one.start < at <= one.end or one.start == at), default=0)


def curve_with(before: Sequence[Step], changes: Iterable[Promise], start: datetime, end: datetime) -> list[Step]:
    """Returns the curve over [start, end) with these changes; `before`: the curve without, from `start` or earlier."""
    ends = [*(step.at for step in before[1:]), end]
    promised = (Promise(step.units, step.at, until) for step, until in zip(before, ends, strict=True))
    return curve([*(one for one in promised if one.end > one.start), *changes], start, end)


def excess_intervals(before: Sequence[Step], changes: Sequence[Promise], limit: int) -> list[ExcessInterval]:
    """Returns where the allocation exceeds the limit and is higher than before; neighbours joined. One pass over all
    steps.

    A class may be over its limit already (a node died): a change that removes units from it is not an excess.
    """
    if not changes:
        return []
    start, end = min(one.start for one in changes), max(one.end for one in changes)
    added = curve(changes, start, end)
    instants = sorted({start, *(step.at for step in (*before, *added) if start < step.at < end)})
    found: list[ExcessInterval] = []
    old, new = _StepCursor(before), _StepCursor(added)
    for at, until in zip(instants, [*instants[1:], end], strict=True):
        units, more = old.units(at), new.units(at)
        if more <= 0 or units + more <= limit:
            continue
        last = found[-1] if found else None
        if last is not None and last.end == at:
            found[-1] = ExcessInterval(last.start, until, max(last.units, units + more - limit))
        else:
            found.append(ExcessInterval(at, until, units + more - limit))
    return found


def find_conflicts(before: Sequence[Step], changes: Mapping[int, Change], limit: int) -> dict[int, Conflict]:
    """By request, if all of `changes` together exceed the limit: the requests that do so together. Requests that exceed
    it alone are left out: they do not compete, they are too large.
    """
    # If even all additions, with nothing removed, stay within the limit, there is no conflict.
    if not excess_intervals(before, [part for one in changes.values() for part in one if part.units > 0], limit):
        return {}
    fitting = {pk: one for pk, one in changes.items() if not excess_intervals(before, one, limit)}
    together = excess_intervals(before, [part for one in fitting.values() for part in one], limit)
    found = {}
    adds = {pk: _intervals_of_growth(one) for pk, one in fitting.items()} if together else {}
    for excess in together:
        members = tuple(pk for pk, spans in adds.items() if any(a < excess.end and excess.start < b for a, b in spans))
        for pk in members:
            if len(members) > 1 and pk not in found:
                found[pk] = Conflict(members, excess.units, excess.start)
    return found


def _intervals_of_growth(changes: Change) -> list[tuple[datetime, datetime]]:
    """Returns when the change allocates more than is allocated now."""
    start, end = min(one.start for one in changes), max(one.end for one in changes)
    steps = curve(changes, start, end)
    ends = [*(step.at for step in steps[1:]), end]
    return [(step.at, until) for step, until in zip(steps, ends, strict=True) if step.units > 0]


class _StepCursor:
    """Returns the units of a curve at instants that the caller passes in ascending order."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = steps
        self._next = 0
        self._units = 0

    def units(self, at: datetime) -> int:
        while self._next < len(self._steps) and self._steps[self._next].at <= at:
            self._units = self._steps[self._next].units
            self._next += 1
        return self._units
