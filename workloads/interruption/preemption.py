"""The rules by which Kueue preempts, and the last interruption of a run in words. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from cluster.reads.observed import Condition
from portal.ui.text import date_and_time, ordinal, plural

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

UNKNOWN_CAUSE = "its units were needed by work with a better claim to them"

# Reasons of workloads.status.outcome.
_CAUSES = {
    "pod_removed": "its pod was taken off its node in the cluster",
    "units_taken_back": "its units were taken back in the queue",
}


class Preemptor(StrEnum):
    OTHER_TEAM = "other_team"
    OWN_TEAM = "own_team"


@dataclass(frozen=True)
class Interruption:
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
    def who(self) -> Preemptor | None:
        return preemptor_of(self.rule)

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
        why = _CAUSES.get(self.cause, UNKNOWN_CAUSE) if self.cause else preemption_cause(self.rule)
        text = f"Interrupted{when}: {why}{by}."
        if self.times > 1:
            text = f"{text} This was the {ordinal(self.times)} time."
        if self.back_at:
            text = f"{text} It is at work again since {date_and_time(self.back_at)}."
        return text


def preemption_rule(reason: str, message: str) -> str:
    """Of Kueue's condition Preempted; "" for one that is not known here."""
    if reason in _WHY:
        return reason
    return next((rule for text, rule in _TEXTS if text in message), "")


def interruption_from_condition(condition: Condition, times: int) -> Interruption:
    """From Kueue's condition Preempted. Once the work was admitted again, the condition's time is of that."""
    at = condition.since if condition.is_true else None
    return Interruption(at, preemption_rule(condition.reason, condition.message), times)


def preemption_cause(rule: str) -> str:
    return _WHY.get(rule, UNKNOWN_CAUSE)


def preemptor_of(rule: str) -> Preemptor | None:
    """None: nobody knows."""
    return None if rule not in _WHY else Preemptor.OWN_TEAM if rule == IN_TEAM else Preemptor.OTHER_TEAM
