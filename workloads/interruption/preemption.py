"""The rules by which Kueue preempts, and the last interruption of a run as text. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from cluster.manifests.node_removal import notices
from cluster.reads.observed import Condition
from portal.ui.text import date_and_time, ordinal, plural

# Kueue's names in its condition Preempted.
RECLAIM, IN_TEAM = "InCohortReclamation", "InClusterQueue"

WHILE_BORROWING, FAIR_SHARING = "InCohortReclaimWhileBorrowing", "InCohortFairSharing"

# Once the workload is admitted again, the only remaining reason is Kueue's sentence.
_TEXTS = (
    ("reclamation within the cohort", RECLAIM),
    ("prioritization in the ClusterQueue", IN_TEAM),
    ("reclaim while borrowing", WHILE_BORROWING),
    ("Fair Sharing within the cohort", FAIR_SHARING),
)

_WHY = {
    RECLAIM: "its borrowed units were reclaimed by the lending team",
    WHILE_BORROWING: "its borrowed units were reclaimed by the lending team",
    FAIR_SHARING: "its borrowed units were needed by a team that uses a smaller share",
    IN_TEAM: "a workload of your team with a higher priority needed its units",
}

UNKNOWN_CAUSE = "its units were needed by a workload that takes precedence"

# Kueue's reasons of the condition Evicted, and the codes of those that are no preemptions.
PREEMPTED, DEACTIVATED, MAINTENANCE = "Preempted", "deactivated", "maintenance"
# Evicted through the API from a node that others than the portal had cordoned.
DRAIN = "moved_by_drain"
# Kueue then found no other node for the pod.
REQUEUED_AFTER_DRAIN = "requeued_after_drain"
NODE_LOST = "node_lost"
_EVICTIONS = {
    "PodsReadyTimeout": "pods_not_ready",
    "AdmissionCheck": "admission_check",
    "ClusterQueueStopped": "queue_stopped",
    "LocalQueueStopped": "queue_stopped",
    "NodeFailures": NODE_LOST,
    "Deactivated": DEACTIVATED,
    "InactiveWorkload": DEACTIVATED,
}
# Reasons of workloads.status.outcome and of explanations of an ended pod: what happened, and why.
CAUSES = {
    "pod_removed": ("Interrupted", "its pod was removed from its node in the cluster"),
    "units_taken_back": ("Preempted", "its units were reclaimed by the queue"),
    "evicted": ("Interrupted", "its node ran low on memory, disk space or another resource and evicted it"),
    "too_many_files": ("Interrupted", "it wrote more files than allowed, and its node evicted it"),
    "node_pressure": ("Interrupted", "its node was low on a resource and rejected it"),
    "node_shutdown": ("Interrupted", "its node was shut down"),
    NODE_LOST: ("Interrupted", "its node was not ready, was cleared by a taint or is no longer in the cluster"),
    "drained": ("Interrupted", "its node was drained, or a taint removed its pods"),
    "preempted_on_node": ("Interrupted", "a pod with a higher priority needed its place on the node"),
    "disrupted": ("Interrupted", "the cluster removed its pod"),
    "pods_not_ready": ("Requeued", "its pods were not ready within the time limit of the queue"),
    "admission_check": ("Requeued", "an admission check of the cluster withdrew its admission"),
    "queue_stopped": ("Requeued", "its queue was stopped in the cluster"),
    DEACTIVATED: ("Deactivated", "its Kueue Workload was set to inactive"),
    MAINTENANCE: ("Moved", "its node is in maintenance"),
    DRAIN: ("Interrupted", "it was moved off its node by a drain"),
    REQUEUED_AFTER_DRAIN: ("Requeued", "its node was drained, and the queue took its units back"),
    "evicted_from_queue": ("Requeued", "the queue system evicted it"),
    # The node had a notice of its removal.
    **{code: ("Interrupted", why) for code, why in notices.CAUSES.items()},
}


class Preemptor(StrEnum):
    OTHER_TEAM = "other_team"
    OWN_TEAM = "own_team"


@dataclass(frozen=True)
class Interruption:
    """The last interruption of a run. `at` None: unknown. `rule`: Kueue's name, "" unknown; `cause`: the reason of the
    run's end, "" if the same run continues after a preemption. `times`: number so far; `back_at`: since when it runs
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
        """Shown beside a sentence that names the cause."""
        when = f" at {date_and_time(self.at)}" if self.at else ""
        by = f" by Kueue's rule {self.rule}" if self.rule else ""
        return f"{self._event[0]}{when}{by}, for the {ordinal(self.times)} time."

    @property
    def sentence(self) -> str:
        """When, why, by which rule, and how often so far."""
        when = f" at {date_and_time(self.at)}" if self.at else ""
        by = f" (Kueue's rule {self.rule})" if self.rule else ""
        event, why = self._event
        text = f"{event}{when}: {why}{by}."
        if self.times > 1:
            text = f"{text} This was the {ordinal(self.times)} time."
        if self.back_at:
            text = f"{text} It has been running again since {date_and_time(self.back_at)}."
        return text

    @property
    def _event(self) -> tuple[str, str]:
        """What happened, and why."""
        if not self.cause:
            return "Preempted", preemption_cause(self.rule)
        return CAUSES.get(self.cause, ("Interrupted", "the cluster removed its pod"))


def eviction_cause(reason: str) -> str:
    """Returns the code of an eviction that is no preemption. Kueue deactivates for several reasons of its own."""
    return _EVICTIONS.get(reason, DEACTIVATED if reason.startswith("Deactivated") else "evicted_from_queue")


def preemption_rule(reason: str, message: str) -> str:
    """Returns the rule of Kueue's condition Preempted; "" for an unknown rule."""
    if reason in _WHY:
        return reason
    return next((rule for text, rule in _TEXTS if text in message), "")


def interruption_from_condition(condition: Condition, times: int) -> Interruption:
    """Reads Kueue's condition Preempted. Once the workload is admitted again, the time of the condition is that of the
    admission.
    """
    at = condition.since if condition.is_true else None
    return Interruption(at, preemption_rule(condition.reason, condition.message), times)


def preemption_cause(rule: str) -> str:
    return _WHY.get(rule, UNKNOWN_CAUSE)


def preemptor_of(rule: str) -> Preemptor | None:
    """Returns None if unknown."""
    return None if rule not in _WHY else Preemptor.OWN_TEAM if rule == IN_TEAM else Preemptor.OTHER_TEAM
