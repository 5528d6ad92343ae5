"""What Kueue, the API server, the scheduler and the kubelet say, as one plain sentence with numbers.

Pure: texts in, Explained out. A text that is not known is shown as it is: a wrong explanation is worse than a raw one.
"""

from __future__ import annotations

from workloads.explain.creation import not_created, refused_job, refused_pod, with_numbers
from workloads.explain.ended import AGAIN, Ended, ended_badly
from workloads.explain.held_back import held_back, no_pod, not_heard, set_aside
from workloads.explain.nodes import by_nodes, is_about_nodes, still_ending
from workloads.explain.placing import unschedulable
from workloads.explain.queue import held, pending, preempted
from workloads.explain.said import Explained, units_of
from workloads.explain.starting import (
    NO_KEY,
    OTHER_KEY,
    Sealed,
    SignIn,
    cannot_open,
    not_set_up,
    slow_pull,
    waiting_container,
)

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
