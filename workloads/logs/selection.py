"""Whose logs are kept: those of failed workers, then of the first ones. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cluster.reads.observed import Pod
from workloads.core.observation import log_container
from workloads.status import workers

LOGS_PER_RUN = 8


@dataclass(frozen=True)
class LogPlace:
    """The container in which a worker writes; `container` "": it has not started."""

    worker: int
    pod: str
    container: str


def logs_to_keep(pods: Sequence[Pod]) -> tuple[LogPlace, ...]:
    """Returns at most LOGS_PER_RUN places; the first is that of the worker that is shown by default."""
    theirs = workers.by_worker(pods)
    default = workers.default_log_worker(pods)
    failed = {index for index, own in theirs.items() if any(pod.phase == "Failed" for pod in own)}
    order = sorted(theirs, key=lambda index: (index != default, index not in failed, index))
    return tuple(_place(index, theirs[index]) for index in order[:LOGS_PER_RUN])


def _place(index: int, pods: Sequence[Pod]) -> LogPlace:
    """The last container that has started, in the last pod that has one."""
    started = [(pod.name, container) for pod in pods if (container := log_container(pod))]
    return LogPlace(index, *(started[-1] if started else (pods[-1].name, "")))
