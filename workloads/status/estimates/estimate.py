"""When a queued run may start: a range with its basis, or why there is no estimate. Pure: facts in, words out.

Both ends are bounds, not guesses. A run is assumed to continue until its known end: its time limit, or the announced
stop of an idle notebook. The earliest start assumes the best case: a run without a known end may end at any time,
borrowed units may arrive, and a larger run is skipped in the queue. The latest start assumes the worst case: runs ahead
take units first, smaller runs may overtake, and a run without a known end continues. Recent starts of the class make
the latest earlier, and only they account for a node that fits and for other teams; but they never make the start
earlier than the known ends allow: of the history, only waits that are longer than until the earliest start count, and
at least five of them are needed.
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
# Of the recent starts, this share had not waited longer than the latest start that is told.
LATE_SHARE = 0.9
RECENT = timedelta(days=30)
# The time until an ended run has released its units and the run that gets them has started.
HANDOVER = timedelta(minutes=5)
# With more runs ahead than this, their time limits are not added up.
FOLLOWED = 20
# A change of the number of units at a point in time.
UnitChange = tuple[datetime, int]


def _moment(step: UnitChange) -> datetime:
    return step[0]


class WaitReason(StrEnum):
    UNITS = "units"  # units of the team's own quota, or idle units of other teams
    NODE = "node"
    HELD = "held"
    QUEUE = "queue"
    NODES = "nodes"  # no node fits for another reason than units in use on a single node
    NEVER = "never"
    UNSEEN = "unseen"


class Basis(StrEnum):
    ENDS = "ends"
    STARTS = "starts"
    BOTH = "both"


class Unknown(StrEnum):
    """Why there is no estimate."""

    NEVER = "never"
    QUEUE = "queue"
    NODES = "nodes"
    UNSEEN = "unseen"
    HELD = "held"
    HELD_OVERDUE = "held_overdue"
    TOO_LARGE = "too_large"
    NO_LATEST = "no_latest"  # the known ends do not make a start possible, and there is too little history


@dataclass(frozen=True)
class RunningUnits:
    """Units in use. `ends_at` None: without a known end."""

    units: int
    ends_at: datetime | None = None


@dataclass(frozen=True)
class UnitsAhead:
    """The units of a run ahead. `minutes`: its time limit from its start; None: no limit."""

    units: int
    minutes: int | None = None


@dataclass(frozen=True)
class EstimateFacts:
    """Facts about one run and its team, in units of its class. `borrowing`: what it may use beyond `granted`;
    `changes`: how the grant grows or shrinks at later times; `behind`: sizes of the runs behind it; `since`: when it
    was queued; `starts`: how long the recent starts of the class had waited.
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
        """The most units granted at any time from now on."""
        most = granted = self.granted
        for _at, together in groupby(sorted(self.changes), key=_moment):
            granted += sum(units for _at, units in together)
            most = max(most, granted)
        return most

    @property
    def is_for_borrowed(self) -> bool:
        """The team's own quota is too small even if all of it is free, now or later."""
        return self.units > self.most_granted


@dataclass(frozen=True)
class Estimate:
    """`is_open`: the run may start at any time until `latest`."""

    earliest: datetime
    latest: datetime
    basis: str
    code: Basis
    is_open: bool


@dataclass(frozen=True)
class CannotTell:
    """`because`: the reason `code` in words, with numbers."""

    code: Unknown
    because: str


def estimate(facts: EstimateFacts, *, now: datetime) -> Estimate | CannotTell:
    if (unknown := _no_time(facts, now)) is not None:
        return unknown
    begin = facts.held_until if facts.wait is WaitReason.HELD and facts.held_until else now
    first = begin if facts.wait is WaitReason.NODE else _soonest(facts, begin)
    if first is None:
        most = plural(facts.most_granted + facts.borrowing, facts.unit)
        why = f"it requests {plural(facts.units, facts.unit)}, and your team may use at most {most}"
        return CannotTell(Unknown.TOO_LARGE, why)
    last = None if facts.wait is WaitReason.NODE else _surest(facts, begin)
    latest = None if last is None else last + HANDOVER
    # Waiting times of other runs mean nothing while scheduling is paused.
    waits = [] if facts.wait is WaitReason.HELD else sorted(one for one in facts.starts if facts.since + one > first)
    if len(waits) < FEWEST_STARTS:
        if latest is None:
            return CannotTell(Unknown.NO_LATEST, _unbounded(facts, len(waits)))
        return _told(facts, first, latest, Basis.ENDS, begin)
    high = facts.since + waits[ceil(LATE_SHARE * len(waits)) - 1]
    code = Basis.BOTH if first > begin or (latest is not None and latest <= high) else Basis.STARTS
    return _told(facts, first, high if latest is None else min(latest, high), code, begin, len(waits))


# ---- earliest and latest start ---------------------------------------------------------------------------------------


def _soonest(facts: EstimateFacts, begin: datetime) -> datetime | None:
    """Returns the earliest start; None if the run could not start even if all runs of the team ended."""
    steps = [*facts.changes, *((one.ends_at or begin, one.units) for one in facts.running)]
    demand = facts.units
    for one in facts.ahead:
        # When this run can start, a smaller run ahead has started too. Without a time limit, that run may have ended by
        # then.
        if one.units <= facts.units and one.minutes is not None:
            demand += one.units
            steps.append((begin + timedelta(minutes=one.minutes), one.units))
    return _when(_free(facts) + facts.borrowing, steps, demand, begin)


def _surest(facts: EstimateFacts, begin: datetime) -> datetime | None:
    """Returns the latest start; None if the known ends do not free enough units."""
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
    """Returns the first time at which `demand` units are available."""
    there = free + sum(units for at, units in steps if at <= begin)
    if there >= demand:
        return begin
    for at, together in groupby(sorted(one for one in steps if one[0] > begin), key=_moment):
        there += sum(units for _at, units in together)
        if there >= demand:
            return at
    return None


# ---- sentences -------------------------------------------------------------------------------------------------------


def _told(
    facts: EstimateFacts, earliest: datetime, latest: datetime, code: Basis, begin: datetime, starts: int = 0
) -> Estimate:
    """Rounds the range outwards to whole minutes."""
    is_open = facts.wait is not WaitReason.HELD and earliest <= begin
    floor = earliest.replace(second=0, microsecond=0)
    ceiling = latest.replace(second=0, microsecond=0)
    if ceiling < latest:
        ceiling += timedelta(minutes=1)
    history = f"{starts} starts of the last {RECENT.days} days that waited as long"
    ends = "the known end times of your team's runs"
    sooner = "" if is_open else "; sooner if a run ends early"
    source = {
        Basis.ENDS: f"based on {ends}; sooner if a run ends early",
        Basis.STARTS: f"based on {history}",
        Basis.BOTH: f"based on {ends} and {history}{sooner}",
    }[code]
    if code is Basis.ENDS and not facts.running and not facts.ahead:
        source = "based on your team's unused quota"
    parts = [_place(facts), "if scheduling resumes as expected" if facts.wait is WaitReason.HELD else "", source]
    return Estimate(floor, ceiling, "; ".join(filter(None, parts)), code, is_open)


def _place(facts: EstimateFacts) -> str:
    """For a run that waits for other teams' units, the position is meaningless."""
    if facts.position is None or facts.is_for_borrowed:
        return ""
    return f"{ordinal(facts.position)} in your team's queue"


def _no_time(facts: EstimateFacts, now: datetime) -> CannotTell | None:
    code = _WITHOUT_TIME.get(facts.wait)
    if facts.wait is WaitReason.HELD and (facts.held_until is None or facts.held_until <= now):
        code = Unknown.HELD if facts.held_until is None else Unknown.HELD_OVERDUE
    return None if code is None else CannotTell(code, _WHY[code])


_WITHOUT_TIME = {
    WaitReason.NEVER: Unknown.NEVER,
    WaitReason.QUEUE: Unknown.QUEUE,
    WaitReason.NODES: Unknown.NODES,
    WaitReason.UNSEEN: Unknown.UNSEEN,
}
_WHY = {
    Unknown.NEVER: "it cannot start with its current configuration",
    Unknown.QUEUE: "your team's queue does not admit workloads at present",
    Unknown.NODES: "it does not fit on the nodes now, and it is unknown when it will",
    Unknown.UNSEEN: "the queue has not reported yet what it waits for",
    Unknown.HELD: "scheduling of its class is paused without an end time",
    Unknown.HELD_OVERDUE: "scheduling of its class is still paused, longer than expected",
}


def _unbounded(facts: EstimateFacts, starts: int) -> str:
    unit = plural_form(facts.unit)
    if facts.wait is WaitReason.NODE:
        why = f"no single node has {plural(facts.units, facts.unit)} free, and it is unknown when one will"
    elif facts.is_for_borrowed:
        why = f"it waits for idle {unit} of other teams, and it is unknown when there are enough"
    elif len(facts.ahead) > FOLLOWED:
        why = f"{len(facts.ahead)} workloads of your team are ahead"
    elif endless := sum(one.ends_at is None for one in facts.running) + sum(one.minutes is None for one in facts.ahead):
        # Running runs without a time limit use the units that this run waits for, so they count as ahead.
        why = f"{plural(endless, 'workload')} ahead {'has' if endless == 1 else 'have'} no time limit"
    else:
        why = f"at no known time are enough {unit} of your team free"
    if facts.wait is WaitReason.HELD:
        return why
    return f"{why}; too little history ({starts} of {FEWEST_STARTS} starts)"


EstimateOutcome = Estimate | CannotTell
