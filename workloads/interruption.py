"""Who may interrupt a run, by which rule of the queue, and what is lost by it; and what is said when it happened. Pure.

The queues are set to two rules of Kueue (cluster/manifests/namespace.py). A team that needs units it was granted takes
them back from whoever borrows them: of the borrower the least urgent work goes first, of equal work what was admitted
last, until nothing is borrowed any more. And within a team, work of a higher priority takes the place of work of a
lower one. Both are told before and after by Kueue's own names for them, and never with whose work it was.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from catalog.life_cycle import date_and_time
from cluster.observed import Condition
from cluster.run_spec import HOME, JOB, PRIORITIES
from portal.quota_bar import plural, several
from workloads.workers import ordinal

# Kueue's names, as it writes them into its condition Preempted.
RECLAIM, IN_TEAM = "InCohortReclamation", "InClusterQueue"
WHILE_BORROWING, FAIR_SHARING = "InCohortReclaimWhileBorrowing", "InCohortFairSharing"
# What stays of the reason once the work was admitted again is Kueue's sentence.
_TEXTS = (
    ("reclamation within the cohort", RECLAIM),
    ("prioritization in the ClusterQueue", IN_TEAM),
    ("reclaim while borrowing", WHILE_BORROWING),
    ("Fair Sharing within the cohort", FAIR_SHARING),
)
_WHY = {
    RECLAIM: "its units were borrowed, and the team that they belong to needed them",
    WHILE_BORROWING: "its units were borrowed, and the team that they belong to needed them",
    FAIR_SHARING: "its units were borrowed, and a team with a smaller share of them needed some",
    IN_TEAM: "more important work of your team needed its units",
}
UNKNOWN = "its units were needed by work with a better claim to them"


class Who(StrEnum):
    OTHER_TEAM = "other_team"
    OWN_TEAM = "own_team"


class Standing(StrEnum):
    BORROWED = "borrowed"  # at least one of its units
    IN_GRACE = "in_grace"
    OWN = "own"
    NO_QUEUE = "no_queue"


# ---- before ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Held:
    """Units of a class that something of the team holds; `rank`: of its priority, 0 is the highest."""

    key: str
    units: int
    rank: int
    since: datetime


@dataclass(frozen=True)
class Place:
    """`borrowed`: how many of its units are beyond what the team may keep."""

    standing: Standing
    borrowed: int = 0


@dataclass(frozen=True)
class Threat:
    """`priorities`: of the work of the own team that may do it."""

    who: Who
    rule: str
    priorities: tuple[str, ...] = ()


@dataclass(frozen=True)
class Exposure:
    """How a run may be interrupted by the queue. `holds`: it has its units; else what is said is of when it starts."""

    place: Place
    threats: tuple[Threat, ...]
    sentence: str
    holds: bool

    @property
    def is_borrowed(self) -> bool:
        return self.place.standing is Standing.BORROWED


def places(held: Iterable[Held], *, granted: int, keepable: int) -> dict[str, Place]:
    """By key, of all that holds units of one class. `keepable`: what may run on, units of grants in their grace too."""
    found, units = {}, 0
    for one in sorted(held, key=lambda one: (one.rank, one.since)):
        units += one.units
        if units > keepable:
            found[one.key] = Place(Standing.BORROWED, min(one.units, units - keepable))
        else:
            found[one.key] = Place(Standing.IN_GRACE if units > granted else Standing.OWN)
    return found


def place_of_new(held: Iterable[Held], new: Held, *, granted: int, keepable: int, borrowing_limit: int) -> Place:
    """Of what holds nothing yet, if it started beside all this; without borrowing it waits for the team's own."""
    if not borrowing_limit:
        return Place(Standing.OWN)
    found = places([*held, new], granted=granted, keepable=keepable)[new.key]
    # Nothing starts on what is in its grace.
    return Place(Standing.OWN) if found.standing is Standing.IN_GRACE else found


def place_at_launch(units: int, *, own: int, borrowing_limit: int) -> Place:
    """Of so many units more. `own`: what is left of the team's own; without borrowing it waits for those."""
    if not borrowing_limit or units <= own:
        return Place(Standing.OWN)
    return Place(Standing.BORROWED, units - max(0, own))


def exposure(place: Place, *, units: int, rank: int, unit: str, holds: bool = True) -> Exposure:
    threats = []
    if place.standing is Standing.BORROWED:
        threats.append(Threat(Who.OTHER_TEAM, RECLAIM))
    if rank and place.standing is not Standing.NO_QUEUE:
        threats.append(Threat(Who.OWN_TEAM, IN_TEAM, PRIORITIES[:rank]))
    sentence = " ".join(filter(None, (_of_units(place, units, unit, holds), _of_priority(place, rank))))
    return Exposure(place, tuple(threats), sentence, holds)


def _of_units(place: Place, units: int, unit: str, holds: bool) -> str:
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
    what = f"a borrowed {unit}" if units == 1 else f"{units} borrowed {several(unit)}"
    return f"{begins} on {what}: {takes}."


def _of_priority(place: Place, rank: int) -> str:
    if place.standing is Standing.NO_QUEUE:
        return ""
    if not rank:
        return "No work of your team takes its place." if place.standing is not Standing.BORROWED else ""
    too = " too" if place.standing is Standing.BORROWED else ""
    if rank == 1:
        return f"{PRIORITIES[0].capitalize()} work of your team may take its place{too}."
    return f"More urgent work of your team ({' or '.join(PRIORITIES[:rank])}) may take its place{too}."


def loses(kind: str, *, checkpoints: bool, claim: str, mount_path: str) -> str:
    """What an interruption costs."""
    return f"{begins_again(kind, checkpoints=checkpoints)} {files_after(claim, mount_path)}"


def begins_again(kind: str, *, checkpoints: bool) -> str:
    """The part of it that is not about files."""
    if kind != JOB:
        return "It starts again by itself with an empty memory: kernels and what they hold are lost."
    if checkpoints:
        return "It starts again by itself and goes on from the last checkpoint that it wrote; what came after is lost."
    return "It starts again by itself from its beginning: nobody said that it writes checkpoints."


def files_after(claim: str, mount_path: str) -> str:
    """What the end of a run does to its files; as true before as after it."""
    path = mount_path or HOME
    if not claim:
        return "It has no volume: its files go with the run, as what is only in memory does."
    if path == HOME:
        return f"Its files in {HOME} stay on the volume {claim}; what is only in memory is lost."
    return f"Its files in {path} stay on the volume {claim}; files elsewhere and what is only in memory are lost."


# ---- after -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Interrupted:
    """The last interruption of a run. `at` None: nobody saw it. `rule`: Kueue's name, "" unknown; `cause`: the reason
    of an end that was not the queue's, "" where the queue did it. `times`: so far; `back_at`: since when it is at work
    again.
    """

    at: datetime | None
    rule: str
    times: int
    cause: str = ""
    back_at: datetime | None = None

    @property
    def who(self) -> Who | None:
        return who(self.rule)

    @property
    def count(self) -> str:
        """For lists."""
        when = f", last at {date_and_time(self.at)}" if self.at else ""
        return f"interrupted {plural(self.times, 'time')}{when}"

    @property
    def brief(self) -> str:
        """Beside a sentence that says why."""
        when = f" at {date_and_time(self.at)}" if self.at else ""
        by = f" by Kueue's rule {self.rule}" if self.rule else ""
        return f"Interrupted{when}{by}, for the {ordinal(self.times)} time."

    @property
    def sentence(self) -> str:
        """When, why, by which rule, and how often so far."""
        when = f" at {date_and_time(self.at)}" if self.at else ""
        by = f" (Kueue's rule {self.rule})" if self.rule else ""
        text = f"Interrupted{when}: {why(self.rule) if not self.cause else _CAUSES.get(self.cause, UNKNOWN)}{by}."
        if self.times > 1:
            text = f"{text} This was the {ordinal(self.times)} time."
        if self.back_at:
            text = f"{text} It is at work again since {date_and_time(self.back_at)}."
        return text


# Reasons of workloads.ending.
_CAUSES = {
    "pod_removed": "its pod was taken off its node in the cluster",
    "units_taken_back": "its units were taken back in the queue",
}


def rule_of(reason: str, message: str) -> str:
    """Of Kueue's condition Preempted; "" for one that is not known here."""
    if reason in _WHY:
        return reason
    return next((rule for text, rule in _TEXTS if text in message), "")


def told(condition: Condition, times: int) -> Interrupted:
    """From Kueue's condition Preempted. Once the work was admitted again, the condition's time is of that."""
    at = condition.since if condition.is_true else None
    return Interrupted(at, rule_of(condition.reason, condition.message), times)


def why(rule: str) -> str:
    return _WHY.get(rule, UNKNOWN)


def who(rule: str) -> Who | None:
    """None: nobody knows."""
    return None if rule not in _WHY else Who.OWN_TEAM if rule == IN_TEAM else Who.OTHER_TEAM
