"""What Kueue, the API server, the scheduler and the kubelet say, as one plain sentence with numbers.

Pure: texts in, Explained out. A text that is not known is shown as it is: a wrong explanation is worse than a raw one.
"""

from __future__ import annotations

from workloads.status.explain.admission import not_created, refused_job, refused_pod, with_numbers
from workloads.status.explain.container_start import (
    NO_KEY,
    OTHER_KEY,
    RegistryAccess,
    UnreadableSecrets,
    not_set_up,
    secrets_unreadable,
    slow_pull,
    waiting_container,
)
from workloads.status.explain.nodes import by_nodes, is_about_nodes, waits_for_terminating_pod
from workloads.status.explain.quantities import units_of
from workloads.status.explain.queue import class_held, pending, preempted
from workloads.status.explain.queue_holds import deactivated, mirror_outdated, no_pod, queue_hold
from workloads.status.explain.scheduling import unschedulable
from workloads.status.explain.termination import AGAIN, PodTermination, explain_termination
from workloads.status.explain.types import Explanation

__all__ = [
    "AGAIN",
    "NO_KEY",
    "OTHER_KEY",
    "Ended",
    "Explained",
    "Sealed",
    "SignIn",
    "by_nodes",
    "cannot_open",
    "ended_badly",
    "held",
    "held_back",
    "is_about_nodes",
    "no_pod",
    "not_created",
    "not_heard",
    "not_set_up",
    "pending",
    "preempted",
    "refused_job",
    "refused_pod",
    "set_aside",
    "slow_pull",
    "still_ending",
    "units_of",
    "unschedulable",
    "waiting_container",
    "with_numbers",
]
