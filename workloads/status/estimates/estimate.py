"""When a run that waits may start: a range with its basis, or why nobody can tell. Pure: facts in, words out.

Both ends are bounds and none is a guess. What runs is taken to go on until its known end: the run time's, or the stop
that an idle notebook was told of. For the earliest everything helps: what has no known end may end at any time, what is
borrowed may come, and what is larger is passed over in the queue. For the latest nothing does: who is ahead takes units
first, who is smaller may overtake, and what has no known end goes on. Recent starts of the class that waited as long as
this one already did narrow both, from five on. A node that fits, and what other teams do, only these starts know.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import groupby
from math import ceil

from portal.ui.text import ordinal, plural, plural_form

FEWEST_STARTS = 5
RECENT = timedelta(days=30)
# Until what ended has given its units back, and what they went to has begun.
HANDOVER = timedelta(minutes=5)
# Behind more than so many the run times of all of them are not added up.
FOLLOWED = 20
# A unit more or less at an instant.
UnitChange = tuple[datetime, int]


def _moment(step: UnitChange) -> datetime:
    return step[0]


class WaitReason(StrEnum):
    UNITS = "units"  # of the team's own, or of others' that are idle
    NODE = "node"
    HELD = "held"
    QUEUE = "queue"
    NODES = "nodes"  # it does not fit there, for another reason than units in use on one
    NEVER = "never"
    UNSEEN = "unseen"


class Basis(StrEnum):
    ENDS = "ends"
    STARTS = "starts"
    BOTH = "both"


@dataclass(frozen=True)
class RunningUnits:
    """It holds units. `ends_at` None: without a known end."""

    units: int
    ends_at: datetime | None = None


@dataclass(frozen=True)
class UnitsAhead:
    """It goes first. `minutes`: its run time from its start; None: no end."""

    units: int
    minutes: int | None = None


@dataclass(frozen=True)
class EstimateFacts:
    """Of one run and its team, in units of its class. `borrowing`: what it may hold beyond the `granted`; `changes`:
    what is granted more, or less, from an instant on; `behind`: sizes of those that go later; `since`: when it began to
    wait; `starts`: how long the recent starts of the class had waited.
    """

    wait: WaitReason
    units: int
    since: datetime
    unit: str = "unit"
    position: int | None = None
    granted: int = 0
    borrowing: int = 0
    changes: tuple[UnitChange, ...] = ()
    running: tuple[RunningUnits, ...] = ()
    ahead: tuple[UnitsAhead, ...] = ()
    behind: tuple[int, ...] = ()
    held_until: datetime | None = None
    starts: tuple[timedelta, ...] = ()

    @property
    def most_granted(self) -> int:
        """At any instant from now on."""
        most = granted = self.granted
        for _at, together in groupby(sorted(self.changes), key=_moment):
            granted += sum(units for _at, units in together)
            most = max(most, granted)
        return most

    @property
    def is_for_borrowed(self) -> bool:
        """The team's own would not do if all of it were free, now or later."""
        return self.units > self.most_granted


@dataclass(frozen=True)
class Estimate:
    """`is_open`: it may start at any moment until the latest."""

    earliest: datetime
    latest: datetime
    basis: str
    code: Basis
    is_open: bool


@dataclass(frozen=True)
class CannotTell:
    because: str


def estimate(facts: EstimateFacts, *, now: datetime) -> Estimate | CannotTell:
    if (why := _no_time(facts, now)) is not None:
        return CannotTell(why)
    begin = facts.held_until if facts.wait is WaitReason.HELD and facts.held_until else now
    first = begin if facts.wait is WaitReason.NODE else _soonest(facts, begin)
    if first is None:
        most = plural(facts.most_granted + facts.borrowing, facts.unit)
        return CannotTell(f"it asks for {plural(facts.units, facts.unit)}, and your team may use {most} at most")
    last = None if facts.wait is WaitReason.NODE else _surest(facts, begin)
    latest = None if last is None else last + HANDOVER
    # How long others waited says nothing of a class that is held.
    waits = [] if facts.wait is WaitReason.HELD else sorted(one for one in facts.starts if one > now - facts.since)
    if len(waits) < FEWEST_STARTS:
        if latest is None:
            return CannotTell(_unbounded(facts, len(waits)))
        return _told(facts, first, latest, Basis.ENDS, begin)
    low, high = facts.since + _quantile(waits, 0.1), facts.since + _quantile(waits, 0.9)
    code = Basis.BOTH if (first > begin and first <= low) or (latest is not None and latest <= high) else Basis.STARTS
    return _told(facts, min(first, low), high if latest is None else min(latest, high), code, begin, len(waits))


# ---- bounds ----------------------------------------------------------------------------------------------------------


def _soonest(facts: EstimateFacts, begin: datetime) -> datetime | None:
    """None: not even if everything of the team ended."""
    steps = [*facts.changes, *((one.ends_at or begin, one.units) for one in facts.running)]
    demand = facts.units
    for one in facts.ahead:
        # A smaller one ahead has started when this one can; without an end it may be over by then.
        if one.units <= facts.units and one.minutes is not None:
            demand += one.units
            steps.append((begin + timedelta(minutes=one.minutes), one.units))
    return _when(_free(facts) + facts.borrowing, steps, demand, begin)


def _surest(facts: EstimateFacts, begin: datetime) -> datetime | None:
    """None: the known ends do not bring it there."""
    if len(facts.ahead) > FOLLOWED:
        return None
    steps = [*facts.changes, *((one.ends_at, one.units) for one in facts.running if one.ends_at is not None)]
    demand = 0
    for place, one in enumerate(facts.ahead):
        demand += one.units
        later = [*(other.units for other in facts.ahead[place + 1 :]), *facts.behind]
        starts = _when(_free(facts), steps, demand + _smaller(later, one.units), begin)
        if starts is not None and one.minutes is not None:
            steps.append((starts + HANDOVER + timedelta(minutes=one.minutes), one.units))
    return _when(_free(facts), steps, demand + facts.units + _smaller(facts.behind, facts.units), begin)


def _free(facts: EstimateFacts) -> int:
    return facts.granted - sum(one.units for one in facts.running)


def _smaller(sizes: Iterable[int], than: int) -> int:
    return sum(size for size in sizes if size < than)


def _when(free: int, steps: Sequence[UnitChange], demand: int, begin: datetime) -> datetime | None:
    """The first instant at which so much is there."""
    there = free + sum(units for at, units in steps if at <= begin)
    if there >= demand:
        return begin
    for at, together in groupby(sorted(one for one in steps if one[0] > begin), key=_moment):
        there += sum(units for _at, units in together)
        if there >= demand:
            return at
    return None


def _quantile(waits: Sequence[timedelta], share: float) -> timedelta:
    return waits[max(0, ceil(share * len(waits)) - 1)]


# ---- words -----------------------------------------------------------------------------------------------------------


def _told(
    facts: EstimateFacts, earliest: datetime, latest: datetime, code: Basis, begin: datetime, starts: int = 0
) -> Estimate:
    """In whole minutes, outwards."""
    is_open = facts.wait is not WaitReason.HELD and earliest <= begin
    floor = earliest.replace(second=0, microsecond=0)
    ceiling = latest.replace(second=0, microsecond=0)
    if ceiling < latest:
        ceiling += timedelta(minutes=1)
    history = f"{starts} starts of the last {RECENT.days} days that waited as long"
    ends = "the known ends of what your team runs"
    source = {
        Basis.ENDS: f"from {ends}; sooner when something ends before",
        Basis.STARTS: f"from {history}",
        Basis.BOTH: f"from {ends} and {history}",
    }[code]
    if code is Basis.ENDS and not facts.running and not facts.ahead:
        source = "from what your team is granted and nobody of it uses"
    parts = [_place(facts), "when its class opens as expected" if facts.wait is WaitReason.HELD else "", source]
    return Estimate(floor, ceiling, "; ".join(filter(None, parts)), code, is_open)


def _place(facts: EstimateFacts) -> str:
    """Of what waits for others' units no place says anything."""
    if facts.position is None or facts.is_for_borrowed:
        return ""
    return f"{ordinal(facts.position)} in your team's queue"


def _no_time(facts: EstimateFacts, now: datetime) -> str | None:
    if facts.wait is WaitReason.NEVER:
        return "it does not start as it is, however long it waits"
    if facts.wait is WaitReason.QUEUE:
        return "your team's queue admits nothing at present"
    if facts.wait is WaitReason.NODES:
        return "it does not fit on the nodes as they are, and when it will nobody knows"
    if facts.wait is WaitReason.UNSEEN:
        return "the queue has not said yet what it waits for"
    if facts.wait is not WaitReason.HELD:
        return None
    if facts.held_until is None:
        return "its class is held, and nobody has said until when"
    return "its class is still held, later than was expected" if facts.held_until <= now else None


def _unbounded(facts: EstimateFacts, starts: int) -> str:
    unit = plural_form(facts.unit)
    if facts.wait is WaitReason.NODE:
        why = f"no single node has {plural(facts.units, facts.unit)} free, and when others' work ends nobody knows"
    elif facts.is_for_borrowed:
        why = f"it waits for {unit} that other teams leave idle, and when they do nobody knows"
    elif len(facts.ahead) > FOLLOWED:
        why = f"{len(facts.ahead)} of your team are ahead of it"
    elif endless := sum(one.ends_at is None for one in facts.running) + sum(one.minutes is None for one in facts.ahead):
        has = "has" if endless == 1 else "have"
        why = f"{plural(endless, 'run')} of your team before it {has} no known end"
    else:
        why = f"the {unit} of your team do not suffice at any known time"
    if facts.wait is WaitReason.HELD:
        return why
    few = f"only {plural(starts, 'start')}" if starts else "no start"
    return f"{why}; {few} of the last {RECENT.days} days waited as long as this one, {FEWEST_STARTS} are needed"


EstimateOutcome = Estimate | CannotTell
