"""The progress of a run as steps: requested, queued, node assigned, storage, image, repository, starting, ready. Pure.

Each step is done, busy, stuck or next. The busy or stuck one carries the Status's sentence, remedy and raw text.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cluster.reads.observed import Pod
from portal.ui.text import ordinal
from workloads.core.observation import Observation, running_since, true_since
from workloads.status.desired_run import DesiredRun
from workloads.status.explain.endings.termination import termination_explanation
from workloads.status.explain.quantities import image_size
from workloads.status.failure_record import CompletedStep
from workloads.status.phase import is_requeued
from workloads.status.types import Phase, Status
from workloads.status.workers import current_pods, slowest_pod

# A kubelet sets it when volumes and network are ready.
READY_FOR_CONTAINERS = "PodReadyToStartContainers"
DONE, BUSY, STUCK, NEXT = "done", "busy", "stuck", "next"
# The step to which a problem belongs, whatever else has happened; the volume is never later than the current step.
STORAGE_REASONS = frozenset(
    {
        "node_volume_limit",
        "storage_driver_missing",
        "volume_damaged",
        "volume_denied",
        "volume_unbound",
        "volume_missing",
        "volume_elsewhere",
        "volume_in_use",
        "volume_not_attached",
        "volume_not_mounted",
    }
)
REPOSITORY_REASONS = frozenset(
    {
        "cloning",
        "clone_failed",
        "clone_out_of_memory",
        "no_git",
        "reference_not_found",
        "repository_not_found",
        "repository_private",
        "repository_unreachable",
    }
)


@dataclass(frozen=True)
class ProgressStep:
    """`at`: when the step was done, or since when it is busy. `raw_from`: who wrote `raw`."""

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


def progress_steps(wish: DesiredRun | None, seen: Observation | None, status: Status) -> tuple[ProgressStep, ...]:
    if wish is None:
        return ()
    stages = _stages(wish, seen) if wish.kept is None else _as_kept(wish.kept.reached, _stages(wish, None))
    current = next((index for index, stage in enumerate(stages) if not stage.is_done), len(stages))
    if status.reason in STORAGE_REASONS and wish.volume:
        current = min(current, _index(stages, "Storage"))
    if status.reason in REPOSITORY_REASONS and wish.has_repository:
        current = _index(stages, "Repository")
    over = status.phase in (Phase.STOPPED, Phase.SUCCEEDED, Phase.FAILED, Phase.STOPPING)
    found = []
    for index, stage in enumerate(stages):
        if index < current:
            found.append(ProgressStep(DONE, stage.title, stage.note, stage.at))
        elif index > current or (over and status.phase is not Phase.FAILED):
            found.append(ProgressStep(NEXT, stage.title, stage.note if stage.title == "Image" and not over else ""))
        else:
            found.append(_current(stage.title, status, stage.note))
    if current == len(stages) and _is_lost(status):
        found.append(_current("Node", status))
    if over and (current == len(stages) or status.phase is not Phase.FAILED):
        found.append(_end(status))
    return tuple(found)


def completed_steps(wish: DesiredRun, seen: Observation | None) -> tuple[CompletedStep, ...]:
    """Returns the completed steps. They are stored with a failed run, since its pod is deleted."""
    return tuple(CompletedStep(stage.title, stage.at, stage.note) for stage in _stages(wish, seen) if stage.is_done)


def _is_lost(status: Status) -> bool:
    """The node has a problem: the run may continue, but its state is unknown."""
    return status.phase is Phase.UNKNOWN and status.explained is not None


def _index(stages: list[_Stage], title: str) -> int:
    return next(index for index, stage in enumerate(stages) if stage.title == title)


def _current(title: str, status: Status, known: str = "") -> ProgressStep:
    told = status.explained
    raw, raw_from = (told.raw, told.raw_source) if told else ("", "")
    if status.phase in (Phase.BLOCKED, Phase.FAILED) or _is_lost(status):
        remedy = told.remedy if told else ""
        return ProgressStep(
            STUCK, title, at=status.since, problem=status.sentence, remedy=remedy, raw=raw, raw_from=raw_from
        )
    note = status.sentence
    if known and title == "Image" and not status.facts.keys() & {"image_mib", "nodes_with_image"}:
        note = f"{note} {known[:1].upper()}{known[1:]}."
    if position := status.facts.get("position"):
        note = f"{ordinal(position)} in your team's queue. {note}"
    return ProgressStep(BUSY, title, note, status.since, remedy=told.remedy if told else "", raw=raw, raw_from=raw_from)


def _end(status: Status) -> ProgressStep:
    titles = {Phase.SUCCEEDED: "Ended", Phase.STOPPED: "Stopped", Phase.FAILED: "Ended", Phase.STOPPING: "Stopping"}
    if status.phase is Phase.FAILED:
        return _current("Ended", status)
    state = BUSY if status.phase is Phase.STOPPING else DONE
    return ProgressStep(state, titles[status.phase], status.sentence, status.since)


def _stages(wish: DesiredRun, seen: Observation | None) -> list[_Stage]:
    pod = slowest_pod(seen.pods) if seen else None
    queue = seen.queue if seen else None
    if seen is not None and pod is not None and pod.phase == "Failed" and is_requeued(seen):
        pod = None
    before = _before(seen, pod)
    # A pod that replaced another one uses its own times.
    ran = (None if before else wish.started_at) or running_since(pod)
    if wish.workers > 1 and wish.ended_at is None and seen is not None:
        # The run is as far as its slowest pod.
        ran = running_since(pod)
        if len(current_pods(seen.pods)) < wish.workers:
            pod = ran = None
    bound = (true_since(pod, "PodScheduled") if pod and pod.node else None) or (wish.started_at if ran else None)
    admitted = wish.admitted_at or true_since(queue, "Admitted")
    # A preempted run is in the queue again, whatever happened before.
    if queue is not None and queue.is_true("Evicted") and not queue.is_true("Admitted") and pod is None:
        admitted = bound = ran = None
    ready = wish.ready_at if pod is None or pod.is_ready or wish.ended_at else None
    if before and ready is not None:
        ready = true_since(pod, "Ready") or ready
    stages = [
        _Stage("Requested", True, wish.requested_at),
        _Stage("Queued", admitted is not None, admitted, "admitted" if admitted else ""),
        _Stage("Node assigned", bound is not None, bound, _node_note(seen, pod)),
    ]
    if wish.volume:
        stages.append(
            _Stage("Storage", _has_storage(pod) or ran is not None, true_since(pod, READY_FOR_CONTAINERS) or ran)
        )
    first = _first_start(pod) or ran
    stages.append(_Stage("Image", first is not None, first, image_note(seen)))
    if wish.has_repository:
        stages.append(_Stage("Repository", ran is not None or _is_cloned(pod), _cloned_at(pod) or ran))
    if wish.kind == "notebook":
        stages.append(_Stage("Starting", ready is not None or bool(pod and pod.is_ready), ready))
        stages.append(_Stage("Ready", ready is not None, ready))
    else:
        stages.append(_Stage("Running", ran is not None, ran))
    return stages


def _as_kept(reached: tuple[CompletedStep, ...], stages: list[_Stage]) -> list[_Stage]:
    done = {one.title: one for one in reached}
    return [
        _Stage(stage.title, True, done[stage.title].at, done[stage.title].note)
        if stage.title in done
        else _Stage(stage.title, False, None)
        for stage in stages
    ]


def _node_note(seen: Observation | None, pod: Pod | None) -> str:
    """Names the node, and for a pod that replaced another one, why."""
    if seen is None or pod is None:
        return ""
    before = _before(seen, pod)
    if not before:
        return ", ".join(sorted({one.node for one in current_pods(seen.pods).values() if one.node}))
    ended = termination_explanation(before[-1]).sentence
    return f"{pod.node}{'. ' if pod.node else ''}Attempt {len(seen.pods)}; previous: {ended}"


def _before(seen: Observation | None, pod: Pod | None) -> list[Pod]:
    """Returns the earlier pods of this run."""
    return [one for one in seen.pods if one.phase == "Failed" and one is not pod] if seen and pod else []


def _has_storage(pod: Pod | None) -> bool:
    return true_since(pod, READY_FOR_CONTAINERS) is not None


def _first_start(pod: Pod | None) -> datetime | None:
    """Returns when the first container started: the one that clones the repository has the same image."""
    return next((one.since for one in pod.init_containers if one.since), None) if pod else None


def _is_cloned(pod: Pod | None) -> bool:
    return pod is not None and bool(pod.init_containers) and all(one.exit_code == 0 for one in pod.init_containers)


def _cloned_at(pod: Pod | None) -> datetime | None:
    return pod.init_containers[-1].ended_at if pod and _is_cloned(pod) else None


def image_note(seen: Observation | None) -> str:
    """Describes the size of the image and the nodes that already have it. Nodes may not report all of their images."""
    image = seen.image if seen else None
    if image is None or not image.nodes:
        return ""
    size = f"{image_size(image.size_mib)}, " if image.size_mib else ""
    pod = seen.pod if seen else None
    if pod is not None and pod.node in image.nodes:
        return f"{size}already on {pod.node}"
    count = len(image.nodes)
    return f"{size}already on {count} {'node' if count == 1 else 'nodes'}"
