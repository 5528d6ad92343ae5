"""The way of a run as steps: requested → queued → node assigned → storage → image → starting → ready. Pure.

Each step is done, busy, stuck or next. The busy or stuck one carries the Status's sentence, remedy and raw text.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cluster.observed import Pod
from workloads.phase import Phase, Status, Wish
from workloads.seen import Seen, running_since, since

DONE, BUSY, STUCK, NEXT = "done", "busy", "stuck", "next"
STORAGE_REASONS = frozenset({"volume_unbound", "volume_not_attached"})


@dataclass(frozen=True)
class Step:
    """`at`: when it was done, or since when it is busy."""

    state: str
    title: str
    note: str = ""
    at: datetime | None = None
    problem: str = ""
    remedy: str = ""
    raw: str = ""
    raw_from: str = ""


@dataclass(frozen=True)
class _Stage:
    title: str
    is_done: bool
    at: datetime | None
    note: str = ""


def steps(wish: Wish | None, seen: Seen | None, status: Status) -> tuple[Step, ...]:
    if wish is None:
        return ()
    stages = _stages(wish, seen)
    current = next((index for index, stage in enumerate(stages) if not stage.is_done), len(stages))
    if status.reason in STORAGE_REASONS and wish.has_volume:
        # The volume is what it waits for, whatever else has not happened either.
        current = min(current, next(i for i, stage in enumerate(stages) if stage.title == "Storage"))
    over = status.phase in (Phase.STOPPED, Phase.SUCCEEDED, Phase.FAILED, Phase.STOPPING)
    found = []
    for index, stage in enumerate(stages):
        if index < current:
            found.append(Step(DONE, stage.title, stage.note, stage.at))
        elif index > current or (over and status.phase is not Phase.FAILED):
            found.append(Step(NEXT, stage.title))
        else:
            found.append(_current(stage.title, status))
    if over and (current == len(stages) or status.phase is not Phase.FAILED):
        found.append(_end(status))
    return tuple(found)


def _current(title: str, status: Status) -> Step:
    told = status.explained
    raw, raw_from = (told.raw, told.raw_from) if told else ("", "")
    if status.phase in (Phase.BLOCKED, Phase.FAILED):
        remedy = told.remedy if told else ""
        return Step(STUCK, title, at=status.since, problem=status.sentence, remedy=remedy, raw=raw, raw_from=raw_from)
    note = status.sentence
    if position := status.facts.get("position"):
        note = f"{ordinal(position)} in your team's queue. {note}"
    return Step(BUSY, title, note, status.since, raw=raw, raw_from=raw_from)


def _end(status: Status) -> Step:
    titles = {Phase.SUCCEEDED: "Ended", Phase.STOPPED: "Stopped", Phase.FAILED: "Ended", Phase.STOPPING: "Stopping"}
    if status.phase is Phase.FAILED:
        return _current("Ended", status)
    state = BUSY if status.phase is Phase.STOPPING else DONE
    return Step(state, titles[status.phase], status.sentence, status.since)


def _stages(wish: Wish, seen: Seen | None) -> list[_Stage]:
    pod = seen.pod if seen else None
    queue = seen.queue if seen else None
    ran = wish.started_at or running_since(pod)
    bound = (since(pod, "PodScheduled") if pod and pod.node else None) or (wish.started_at if ran else None)
    admitted = wish.admitted_at or since(queue, "Admitted")
    # What was preempted is in the queue again, whatever happened before.
    if queue is not None and queue.is_true("Evicted") and not queue.is_true("Admitted") and pod is None:
        admitted = bound = ran = None
    ready = wish.ready_at if pod is None or pod.is_ready or wish.ended_at else None
    stages = [
        _Stage("Requested", True, wish.requested_at),
        _Stage("Queued", admitted is not None, admitted, "units assigned" if admitted else ""),
        _Stage("Node assigned", bound is not None, bound, pod.node if pod else ""),
    ]
    if wish.has_volume:
        stages.append(_Stage("Storage", _has_storage(pod) or ran is not None, ran))
    stages.append(_Stage("Image", ran is not None, ran))
    if wish.kind == "notebook":
        stages.append(_Stage("Starting", ready is not None or bool(pod and pod.is_ready), ready))
        stages.append(_Stage("Ready", ready is not None, ready))
    else:
        stages.append(_Stage("Running", ran is not None, ran))
    return stages


def _has_storage(pod: Pod | None) -> bool:
    """A kubelet reports PodReadyToStartContainers when volumes and network are there."""
    return since(pod, "PodReadyToStartContainers") is not None


def ordinal(number: int) -> str:
    suffix = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"
