"""What may preempt a run, and by which rule of the queue. Pure.

The queues have two rules of Kueue (cluster/manifests/namespace.py). A team that needs its own quota reclaims it from
the borrowers: the borrower's workloads with the lowest priority are preempted first, of equal priority the last
admitted, until nothing is borrowed any more. And within a team, a workload with a higher priority preempts one with a
lower priority. The text after an interruption is in workloads/interruption/preemption.py, by Kueue's own names for the
rules; neither names the other team's workload.
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


# ---- risk of an interruption -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HeldUnits:
    """Units of a class in use by one workload of the team; `rank`: of its priority, 0 is the highest."""

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
    """`priorities`: of the team's own workloads that may preempt the run."""

    who: Preemptor
    rule: str
    priorities: tuple[str, ...] = ()


@dataclass(frozen=True)
class Exposure:
    """How the queue may preempt a run. `holds`: the run is admitted; otherwise all fields apply to the time when it
    starts.
    """

    place: QuotaPosition
    threats: tuple[Threat, ...]
    sentence: str
    holds: bool

    @property
    def is_borrowed(self) -> bool:
        return self.place.standing is Standing.BORROWED


def quota_positions(held: Iterable[HeldUnits], *, granted: int, keepable: int) -> dict[str, QuotaPosition]:
    """Returns positions by key, for everything that uses units of one class. `keepable`: units that may keep running,
    including those of grants in their grace period.
    """
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
    """Position of a queued run if it started beside all of these; without borrowing, it waits for the team's own
    quota.
    """
    if not borrowing_limit:
        return QuotaPosition(Standing.OWN)
    found = quota_positions([*held, new], granted=granted, keepable=keepable)[new.key]
    # Nothing starts on a grant in its grace period.
    return QuotaPosition(Standing.OWN) if found.standing is Standing.IN_GRACE else found


def position_at_launch(units: int, *, own: int, borrowing_limit: int) -> QuotaPosition:
    """Position of so many more units. `own`: the free units of the team's own quota; without borrowing, the launch
    waits for these.
    """
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
    uses = "It uses" if holds else "It would use"
    if place.standing is Standing.NO_QUEUE:
        return "It is not managed by the queue and cannot be preempted."
    if place.standing is Standing.IN_GRACE:
        return "It uses an expired grant: no other team can reclaim its units before the grace period ends."
    if place.standing is Standing.OWN:
        return f"{uses} your team's quota: no other team can reclaim its units."
    them = "it" if place.borrowed == 1 else "them"
    reclaims = f"the lending team reclaims {them} as soon as it needs {them}"
    if place.borrowed < units:
        be = "would be" if not holds else "is" if place.borrowed == 1 else "are"
        loses = "loses" if holds else "would lose"
        lent = f"{place.borrowed} of its {plural(units, unit)} {be} borrowed"
        return f"{lent}: {reclaims}, and then the run {loses} all {units}."
    what = f"a borrowed {unit}" if units == 1 else f"{units} borrowed {plural_form(unit)}"
    return f"{uses} {what}: {reclaims}."


def _of_priority(place: QuotaPosition, rank: int) -> str:
    if place.standing is Standing.NO_QUEUE:
        return ""
    if not rank:
        return "No workload of your team can preempt it." if place.standing is not Standing.BORROWED else ""
    also = "also " if place.standing is Standing.BORROWED else ""
    higher = " or ".join(PRIORITIES[:rank])
    return f"Workloads of your team with the priority {higher} can {also}preempt it."
