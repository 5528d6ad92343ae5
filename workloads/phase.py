"""(what is wanted, what was seen) → Status. Nothing of it is stored: it is computed whenever somebody asks.

One Status serves badge, page, stream, API and mail. The words are ui.md's fixed vocabulary, and Unknown: no mirror is
never "stopped".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from cluster.observed import Pod, Workload
from workloads import explain
from workloads.explain import Explained
from workloads.seen import Seen, container, since

# Shorter than this, what is missing is most likely on its way.
PATIENCE = timedelta(seconds=15)


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


WAITING = frozenset({Phase.QUEUED, Phase.BLOCKED})
ON_A_NODE = frozenset({Phase.PREPARING, Phase.STARTING, Phase.READY, Phase.RUNNING, Phase.STOPPING})


@dataclass(frozen=True)
class Wish:
    """The rows: a workload and its current run. `sent` is the result of creating the Job ("" = not tried yet), with
    `sent_text`; `problem` is why the worker could not do its part at its last try, `hold` what is said of its class
    while that is held.
    """

    kind: str
    class_name: str
    class_slug: str
    units: int
    image: str
    number: int
    requested_at: datetime
    is_deleting: bool = False
    has_volume: bool = False
    sent: str = ""
    sent_at: datetime | None = None
    sent_text: str = ""
    problem: str = ""
    hold: str = ""
    stop_requested_at: datetime | None = None
    admitted_at: datetime | None = None
    started_at: datetime | None = None
    ready_at: datetime | None = None
    ended_at: datetime | None = None
    outcome: str = ""
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    preemptions: int = 0


@dataclass(frozen=True)
class Status:
    """`sentence` is for people, `reason` a stable code for programs; `actions` are the next best ones, best first."""

    phase: Phase
    reason: str
    sentence: str
    since: datetime | None
    facts: dict[str, Any] = field(default_factory=dict)
    actions: tuple[str, ...] = ()
    explained: Explained | None = None


def status(wish: Wish | None, seen: Seen | None, *, now: datetime) -> Status:
    """`wish` is None for a workload that was declared and never started; `seen` is None while the mirror is unknown."""
    if wish is None:
        return Status(Phase.STOPPED, "not_started", "Not started yet.", None, actions=("start", "delete"))
    if wish.ended_at is not None:
        return _ended(wish)
    if wish.stop_requested_at is not None or wish.is_deleting:
        return _stopping(wish, seen)
    if wish.sent in ("refused", "foreign"):
        return _refused(wish)
    if seen is None:
        return Status(
            Phase.UNKNOWN,
            "cluster_not_read",
            "The portal has not read the cluster yet, so it cannot say how this is doing.",
            None,
            actions=("stop",),
        )
    return _alive(wish, seen, now)


def _ended(wish: Wish) -> Status:
    if wish.is_deleting:
        return Status(Phase.STOPPING, "deleting", "Being deleted.", wish.ended_at)
    phase = {"succeeded": Phase.SUCCEEDED, "stopped": Phase.STOPPED}.get(wish.outcome, Phase.FAILED)
    facts = {} if wish.exit_code is None else {"exit_code": wish.exit_code}
    return Status(phase, wish.reason or wish.outcome, wish.message, wish.ended_at, facts, ("start", "delete"))


def _stopping(wish: Wish, seen: Seen | None) -> Status:
    word = "Being deleted" if wish.is_deleting else "Stopping"
    if seen is None:
        waits = "the cluster has not confirmed its end yet"
    elif seen.pods:
        waits = "its units are given back when its pod has ended"
    elif seen.queue is not None and seen.queue.is_true("Admitted"):
        waits = "its units are given back when its job is gone"
    else:
        waits = "nothing of it holds units any more"
    return Status(Phase.STOPPING, "stopping", f"{word}; {waits}.", wish.stop_requested_at)


def _refused(wish: Wish) -> Status:
    raw = Explained(
        "refused_by_cluster", "The cluster refuses it.", "Tell the operators.", wish.sent_text, "the API server", True
    )
    text = wish.sent_text if wish.sent == "foreign" else "The cluster refused its job. Stop it, or tell the operators."
    return Status(Phase.BLOCKED, "refused_by_cluster", text, wish.sent_at, actions=("stop", "delete"), explained=raw)


def _alive(wish: Wish, seen: Seen, now: datetime) -> Status:
    pod = seen.pod
    if pod is not None and (pod.deleting_since is None or seen.queue is None):
        return _with_pod(wish, seen, pod, now)
    if seen.queue is not None and seen.queue.is_true("Admitted") and not seen.queue.is_true("Evicted"):
        return _without_pod(wish, seen)
    if seen.job is None:
        return _without_job(wish, now)
    if seen.queue is None:
        return _without_queue(wish, seen, now)
    return _queued(wish, seen.queue, seen.position)


def _without_job(wish: Wish, now: datetime) -> Status:
    if wish.sent == "applied" and wish.sent_at is not None and now - wish.sent_at > PATIENCE:
        text = "Its job is no longer in the cluster; the portal records its end."
        return Status(Phase.UNKNOWN, "job_gone", text, wish.sent_at, actions=("stop",))
    if wish.problem:
        text = f"{wish.problem} Your {wish.kind} is saved and will start when it does."
        return Status(Phase.QUEUED, "cluster_unavailable", text, wish.requested_at, actions=("stop",))
    text = "Asked just now; its job is being created."
    return Status(Phase.QUEUED, "requested", text, wish.requested_at, actions=("stop",))


def _without_queue(wish: Wish, seen: Seen, now: datetime) -> Status:
    assert seen.job is not None
    if not seen.job.suspend:
        text = "Its pod is being created."
        return Status(Phase.PREPARING, "creating_pod", text, seen.job.created_at, actions=("stop",))
    if now - seen.job.created_at > PATIENCE:
        text = "The queue system has not noticed it. Tell the operators: their queue manager may be down."
        return Status(Phase.BLOCKED, "not_in_queue", text, seen.job.created_at, actions=("stop",))
    return Status(Phase.QUEUED, "queued", "Handed to the queue.", wish.requested_at, actions=("stop",))


def _queued(wish: Wish, queue: Workload, position: int | None) -> Status:
    facts: dict[str, Any] = {} if position is None else {"position": position + 1}
    pending = queue.condition("QuotaReserved")
    message = pending.message if pending is not None and not pending.is_true else ""
    found = explain.pending(message, units=wish.units, class_name=wish.class_name, slug=wish.class_slug)
    if wish.hold and not found.is_final:
        found = explain.held(wish.hold, message)
    interrupted = queue.condition("Preempted")
    if interrupted is not None and interrupted.is_true and not found.is_final:
        again = explain.preempted(interrupted.message)
        found = Explained(again.reason, f"{again.sentence} {found.sentence}", again.remedy, again.raw, again.raw_from)
    if not queue.active:
        found = Explained("deactivated", "The queue system put it aside.", "Stop it and start it again.", is_final=True)
    phase = Phase.BLOCKED if found.is_final else Phase.QUEUED
    return Status(phase, found.reason, found.sentence, wish.requested_at, facts, ("stop",), found)


def _without_pod(wish: Wish, seen: Seen) -> Status:
    admitted_at = since(seen.queue, "Admitted")
    refused = seen.warning("FailedCreate", kind="Job")
    if refused is None or (admitted_at is not None and refused.last_at < admitted_at):
        text = "Units are assigned; its pod is being created."
        return Status(Phase.PREPARING, "creating_pod", text, admitted_at, actions=("stop",))
    found = explain.refused_pod(refused.message)
    phase = Phase.BLOCKED if found.is_final else Phase.PREPARING
    return Status(phase, found.reason, found.sentence, admitted_at, {}, ("stop",), found)


def _with_pod(wish: Wish, seen: Seen, pod: Pod, now: datetime) -> Status:
    main = container(pod)
    ended_at = main.ended_at if main else None
    if pod.phase == "Succeeded":
        return Status(Phase.SUCCEEDED, "completed", "It ended well; the portal records it.", ended_at)
    if pod.phase == "Failed":
        bad = ended_badly(pod)
        return Status(Phase.FAILED, bad.reason, bad.sentence, ended_at, {}, ("stop",), bad)
    if pod.deleting_since is not None:
        text = "Its pod is ending; another one takes its place when it is gone."
        return Status(Phase.PREPARING, "replacing_pod", text, pod.deleting_since, actions=("stop",))
    facts = {"node": pod.node} if pod.node else {}
    if not pod.node:
        return _unbound(pod, now)
    if main is None or main.state != "running":
        return _on_its_way(wish, seen, pod, facts, now)
    if wish.kind != "notebook":
        return Status(Phase.RUNNING, "running", f"Runs on {pod.node}.", main.since, facts, ("stop",))
    if pod.is_ready and wish.ready_at is not None:
        return Status(Phase.READY, "ready", f"Ready on {pod.node}.", since(pod, "Ready"), facts, ("open", "stop"))
    if pod.is_ready:
        # The gateway lets people in by the run's own record, which the worker writes in a moment.
        text = "JupyterLab answers; it opens in a moment."
    else:
        text = "JupyterLab is starting." if wish.ready_at is None else "JupyterLab does not answer at the moment."
    return Status(Phase.STARTING, "starting", text, main.since, facts, ("stop",))


def ended_badly(pod: Pod) -> Explained:
    main = container(pod)
    return explain.ended_badly(
        pod_reason=pod.reason,
        pod_message=pod.message,
        state_reason=main.reason if main else "",
        exit_code=main.exit_code if main else None,
    )


def _unbound(pod: Pod, now: datetime) -> Status:
    scheduled = pod.condition("PodScheduled")
    if scheduled is None or scheduled.is_true or scheduled.reason != "Unschedulable":
        return Status(Phase.PREPARING, "placing", "A node is being chosen.", pod.created_at, actions=("stop",))
    found = explain.unschedulable(scheduled.message)
    phase = Phase.BLOCKED if now - pod.created_at > PATIENCE else Phase.PREPARING
    return Status(phase, found.reason, found.sentence, scheduled.since or pod.created_at, {}, ("stop",), found)


def _on_its_way(wish: Wish, seen: Seen, pod: Pod, facts: dict[str, Any], now: datetime) -> Status:
    bound_at = since(pod, "PodScheduled") or pod.created_at
    main = container(pod)
    if main is not None and (found := explain.waiting_container(main.reason, main.message, image=wish.image)):
        return Status(Phase.BLOCKED, found.reason, found.sentence, bound_at, facts, ("stop",), found)
    volume = seen.warning("FailedMount", "FailedAttachVolume", kind="Pod")
    if volume is not None and now - volume.last_at < timedelta(minutes=3) and now - bound_at > PATIENCE:
        raw = Explained(
            "volume_not_attached", "Its volume cannot be attached yet.", "If it stays, tell the operators.",
            volume.message, "the kubelet",
        )  # fmt: skip
        return Status(Phase.BLOCKED, raw.reason, raw.sentence, bound_at, facts, ("stop",), raw)
    text = f"On {pod.node}: fetching its image and setting it up."
    if main is not None and main.message:
        text = f"On {pod.node}. {main.message}"
    return Status(Phase.PREPARING, "preparing", text, bound_at, facts, ("stop",))
