"""Who may interrupt a run, and by which rule of the queue. Pure.

The queues are set to two rules of Kueue (cluster/manifests/namespace.py). A team that needs units it was granted takes
them back from whoever borrows them: of the borrower the least urgent work goes first, of equal work what was admitted
last, until nothing is borrowed any more. And within a team, work of a higher priority takes the place of work of a
lower one. What is said after an interruption is in workloads/interruption/preemption.py, by Kueue's own names for
the rules; neither says whose work it was.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from cluster.manifests.run_spec import PRIORITIES
from portal.ui.text import plural, plural_form
from workloads.interruption.preemption import IN_TEAM, RECLAIM, Preemptor


class Standing(StrEnum):
    BORROWED = "borrowed"  # at least one of its units
    IN_GRACE = "in_grace"
    OWN = "own"
    NO_QUEUE = "no_queue"


# ---- before ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HeldUnits:
    """Units of a class that something of the team holds; `rank`: of its priority, 0 is the highest."""

    key: str
    units: int
    rank: int
    since: datetime


@dataclass(frozen=True)
class QuotaPosition:
    """`borrowed`: how many of its units are beyond what the team may keep."""

    standing: Standing
    borrowed: int = 0


@dataclass(frozen=True)
class Threat:
    """`priorities`: of the work of the own team that may do it."""

    who: Preemptor
    rule: str
    priorities: tuple[str, ...] = ()


@dataclass(frozen=True)
class Exposure:
    """How a run may be interrupted by the queue. `holds`: it has its units; else what is said is of when it starts."""

    place: QuotaPosition
    threats: tuple[Threat, ...]
    sentence: str
    holds: bool

    @property
    def is_borrowed(self) -> bool:
        return self.place.standing is Standing.BORROWED


def quota_positions(held: Iterable[HeldUnits], *, granted: int, keepable: int) -> dict[str, QuotaPosition]:
    """By key, of all that holds units of one class. `keepable`: what may run on, units of grants in their grace too."""
    found, units = {}, 0
    for one in sorted(held, key=lambda one: (one.rank, one.since)):
        units += one.units
        if units > keepable:
            found[one.key] = QuotaPosition(Standing.BORROWED, min(one.units, units - keepable))
        else:
            found[one.key] = QuotaPosition(Standing.IN_GRACE if units > granted else Standing.OWN)
    return found


def position_of_new_run(
    held: Iterable[HeldUnits], new: HeldUnits, *, granted: int, keepable: int, borrowing_limit: int
) -> QuotaPosition:
    """Of what holds nothing yet, if it started beside all this; without borrowing it waits for the team's own."""
    if not borrowing_limit:
        return QuotaPosition(Standing.OWN)
    found = quota_positions([*held, new], granted=granted, keepable=keepable)[new.key]
    # Nothing starts on what is in its grace.
    return QuotaPosition(Standing.OWN) if found.standing is Standing.IN_GRACE else found


def position_at_launch(units: int, *, own: int, borrowing_limit: int) -> QuotaPosition:
    """Of so many units more. `own`: what is left of the team's own; without borrowing it waits for those."""
    if not borrowing_limit or units <= own:
        return QuotaPosition(Standing.OWN)
    return QuotaPosition(Standing.BORROWED, units - max(0, own))


def exposure(place: QuotaPosition, *, units: int, rank: int, unit: str, holds: bool = True) -> Exposure:
    threats = []
    if place.standing is Standing.BORROWED:
        threats.append(Threat(Preemptor.OTHER_TEAM, RECLAIM))
    if rank and place.standing is not Standing.NO_QUEUE:
        threats.append(Threat(Preemptor.OWN_TEAM, IN_TEAM, PRIORITIES[:rank]))
    sentence = " ".join(filter(None, (_of_units(place, units, unit, holds), _of_priority(place, rank))))
    return Exposure(place, tuple(threats), sentence, holds)


def _of_units(place: QuotaPosition, units: int, unit: str, holds: bool) -> str:
    begins = "It runs" if holds else "It would run"
    if place.standing is Standing.NO_QUEUE:
        return "No queue counts what it uses: nothing of it is taken back."
    if place.standing is Standing.IN_GRACE:
        return "It runs on units of a grant that has ended: no other team takes them before its grace ends."
    if place.standing is Standing.OWN:
        return f"{begins} on what your team was granted: no other team takes it back."
    them = "it" if place.borrowed == 1 else "them"
    takes = f"a team that was granted {them} takes {them} back as soon as it needs {them}"
    if place.borrowed < units:
        be = "would be" if not holds else "is" if place.borrowed == 1 else "are"
        goes = "loses" if holds else "would lose"
        return f"{place.borrowed} of its {plural(units, unit)} {be} borrowed: {takes}, and it {goes} all {units} then."
    what = f"a borrowed {unit}" if units == 1 else f"{units} borrowed {plural_form(unit)}"
    return f"{begins} on {what}: {takes}."


def _of_priority(place: QuotaPosition, rank: int) -> str:
    if place.standing is Standing.NO_QUEUE:
        return ""
    if not rank:
        return "No work of your team takes its place." if place.standing is not Standing.BORROWED else ""
    too = " too" if place.standing is Standing.BORROWED else ""
    if rank == 1:
        return f"{PRIORITIES[0].capitalize()} work of your team may take its place{too}."
    return f"More urgent work of your team ({' or '.join(PRIORITIES[:rank])}) may take its place{too}."
