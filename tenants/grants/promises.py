"""Grants over time, as a pure sweep over intervals: in force at t = base(t) + Σ boosts(t)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True)
class Promise:
    """`units` from `start` (included) until `end` (excluded). Workloads that run at the end continue for `grace`."""

    units: int
    start: datetime
    end: datetime
    grace: timedelta = timedelta(0)


@dataclass(frozen=True)
class Step:
    """From `at` on `units` are allocated, until the next step."""

    at: datetime
    units: int


@dataclass(frozen=True)
class ExcessInterval:
    """From `start` to `end` more is allocated than the limit, at most `units` too many."""

    start: datetime
    end: datetime
    units: int


def in_force(promises: Iterable[Promise], at: datetime) -> int:
    return sum(promise.units for promise in promises if promise.start <= at < promise.end)


def keepable_units(promises: Iterable[Promise], at: datetime) -> int:
    """Returns the most units that running workloads may keep: those in force now, or just before an end whose grace
    still lasts.

    A grant that is followed by another without a gap is not counted twice.
    """
    alive = [promise for promise in promises if promise.start <= at < promise.end + promise.grace]
    ends = {promise.end for promise in alive if promise.end <= at}
    before = (sum(one.units for one in alive if one.start < end <= one.end) for end in ends)
    return max((in_force(alive, at), *before))


def curve(promises: Iterable[Promise], start: datetime, end: datetime) -> list[Step]:
    """Returns steps over [start, end); the first is at `start`, and neighbouring steps have different units."""
    kept = [promise for promise in promises if promise.end > start and promise.start < end]
    changes: dict[datetime, int] = {start: 0}
    for promise in kept:
        opens, closes = max(promise.start, start), promise.end
        changes[opens] = changes.get(opens, 0) + promise.units
        if closes < end:
            changes[closes] = changes.get(closes, 0) - promise.units
    steps: list[Step] = []
    units = 0
    for at in sorted(changes):
        units += changes[at]
        if not steps or steps[-1].units != units:
            steps.append(Step(at, units))
    return steps


def peak(promises: Iterable[Promise], start: datetime, end: datetime) -> int:
    return max((step.units for step in curve(promises, start, end)), default=0)


def excesses(promises: Iterable[Promise], limit: int, start: datetime, end: datetime) -> list[ExcessInterval]:
    """Returns where the curve exceeds `limit`, with neighbouring steps joined."""
    steps = curve(promises, start, end)
    found: list[ExcessInterval] = []
    for step, until in zip(steps, [*(following.at for following in steps[1:]), end], strict=True):
        if step.units <= limit:
            continue
        last = found[-1] if found else None
        if last is not None and last.end == step.at:
            found[-1] = ExcessInterval(last.start, until, max(last.units, step.units - limit))
        else:
            found.append(ExcessInterval(step.at, until, step.units - limit))
    return found


def adds_excess(before: Sequence[Promise], after: Sequence[Promise], limit: int, start: datetime, end: datetime) -> int:
    """Returns by how many units a decision overcommits at its worst instant; 0 if it makes no instant worse.

    A class may be over its limit already (a node died): a decision that removes units from it is not an overcommit.
    """
    instants = {step.at for step in (*curve(before, start, end), *curve(after, start, end))}
    return max(
        (
            in_force(after, at) - limit
            for at in instants
            if in_force(after, at) > limit and in_force(after, at) > in_force(before, at)
        ),
        default=0,
    )
