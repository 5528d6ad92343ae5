"""Phase and Status of a workload, which the other modules of this package create and read. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from workloads.status.explain.types import Explanation


class Phase(StrEnum):
    QUEUED = "queued"
    PREPARING = "preparing"
    STARTING = "starting"
    READY = "ready"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    BLOCKED = "blocked"
    UNKNOWN = "unknown"


QUEUED_PHASES = frozenset({Phase.QUEUED, Phase.BLOCKED})
NODE_PHASES = frozenset({Phase.PREPARING, Phase.STARTING, Phase.READY, Phase.RUNNING, Phase.STOPPING})
# Reasons of a run that waits because the queue preempted it.
PREEMPTED_REASONS = frozenset({"preempted", "preempted_in_team"})


@dataclass(frozen=True)
class Status:
    """`sentence` is for people, `reason` is a stable code for programs; `actions` are the suggested next actions, best
    first.
    """

    phase: Phase
    reason: str
    sentence: str
    since: datetime | None
    facts: dict[str, Any] = field(default_factory=dict)
    actions: tuple[str, ...] = ()
    explained: Explanation | None = None
