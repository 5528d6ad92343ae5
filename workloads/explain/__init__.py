"""What Kueue, the API server, the scheduler and the kubelet say, as one plain sentence with numbers.

Pure: texts in, Explained out. A text that is not known is shown as it is: a wrong explanation is worse than a raw one.
"""

from __future__ import annotations

from workloads.explain.creation import refused_job, refused_pod
from workloads.explain.ended import AGAIN, Ended, ended_badly
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
    "cannot_open",
    "ended_badly",
    "held",
    "not_set_up",
    "pending",
    "preempted",
    "refused_job",
    "refused_pod",
    "slow_pull",
    "units_of",
    "unschedulable",
    "waiting_container",
]
