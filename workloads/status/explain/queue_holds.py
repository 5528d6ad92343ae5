"""What keeps a workload in the queue besides quota and nodes: stopped queues, admission checks, retries. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from cluster.mirror.silence import COMPONENTS, CONTROLLERS, QUEUE_SYSTEM, SCHEDULER
from cluster.reads.observed import Job, KueueWorkload
from portal.ui.text import date_and_time, plural
from workloads.core.observation import UNUSABLE_PHASES, Observation
from workloads.status.explain.types import (
    CONTACT_OPERATORS,
    NOT_YOUR_SETTINGS,
    STOP_OR_CHANGE,
    Explanation,
    volume_unusable,
)

_CANNOT = re.compile(r"^Can't admit new workloads: ")
_UNTIL = {
    QUEUE_SYSTEM: "No workload is admitted until it responds.",
    SCHEDULER: "No pod gets a node until it responds.",
    CONTROLLERS: "No pod is created until it responds.",
}
# Kueue's reasons for an eviction, in words.
_OUT = {"PodsReadyTimeout": "it was not ready in time"}


def queue_hold(seen: Observation, queue: KueueWorkload, message: str, now: datetime) -> Explanation | None:
    """Explains a wait for something else than quota and nodes. `message`: Kueue's message about the wait. None: not
    known here.
    """
    at, claim = seen.at, seen.claim
    if claim is not None and claim.phase in UNUSABLE_PHASES:
        return replace(volume_unusable(claim.name, claim.phase), is_final=True)
    if queue.requeue_at is not None and queue.requeue_at > now:
        evicted = queue.condition("Evicted")
        times = queue.requeue_count or sum(queue.evictions.values())
        reason = evicted.reason if evicted is not None and evicted.is_true else ""
        return _put_back(queue.requeue_at, checks=queue.checks, reason=reason, times=times)
    if queue.is_true("QuotaReserved"):
        return _reserved(queue.checks)
    is_stopped, why = (at.is_stopped, at.why) if at else (False, "")
    return _closed(message, why=why, is_stopped=is_stopped, is_active=at is not None and not is_stopped and not why)


def _closed(message: str, *, why: str, is_stopped: bool, is_active: bool) -> Explanation | None:
    """Kueue reports an inactive queue. `why`: its message about the team's queue in the mirror; "" if that queue is
    active or unknown. `is_active`: known, and neither stopped nor broken.
    """
    if "is inactive" not in message and "is stopped" not in message:
        return None
    if is_active and message.startswith("ClusterQueue"):
        # Kueue writes its message again when it tries the workload again.
        text = "Waiting in your team's queue. It was paused when Kueue tried this workload last, and is open now."
        return Explanation("queued", text, "Kueue tries it again automatically.")
    if is_stopped or not why or message.startswith("LocalQueue"):
        text = closed_queue_sentence("", is_stopped=True)
        return Explanation("queue_held", text, "Ask an operator why, and until when.", message, "Kueue")
    return Explanation(
        "queue_inactive",
        closed_queue_sentence(why, is_stopped=False),
        NOT_YOUR_SETTINGS,
        f"{message}\n{why}",
        "Kueue",
    )


def closed_queue_sentence(why: str, *, is_stopped: bool) -> str:
    """`why`: Kueue's message about an inactive queue; "" if it is active. Returns "" for a queue that admits."""
    if is_stopped:
        return "Your team's queue is paused: no workload starts, running workloads continue."
    if not why:
        return ""
    said = _CANNOT.sub("", why).rstrip(".")
    return f"Your team's queue cannot admit workloads: {'it ' if said.startswith('references') else ''}{said}."


def _put_back(at: datetime, *, checks: Mapping[str, str], reason: str, times: int) -> Explanation:
    """Kueue retries at that time and not before. `reason`: of the eviction, as Kueue names it."""
    asked = _listed(name for name, state in checks.items() if state == "Retry")
    why = f"the cluster's admission check {asked} requested a later retry" if asked else _OUT.get(reason, "")
    when = f"{date_and_time(at)}:{at:%S}"
    often = f"It was requeued {plural(times, 'time')} before. " if times else ""
    facts: dict[str, Any] = {"again_at": at.isoformat()}
    text = f"Requeued{f': {why}' if why else ''}. {often}The next retry is at {when}."
    remedy = f"Kueue retries automatically at {when}."
    return Explanation("put_back", text, remedy, facts=facts | ({"times": times} if times else {}))


def _reserved(checks: Mapping[str, str]) -> Explanation:
    """The quota is reserved, but the workload is not admitted yet."""
    waits_for = _listed(name for name, state in checks.items() if state != "Ready")
    if not waits_for:
        return Explanation("reserved", "Its quota is reserved; it starts in a moment.", "It starts automatically.")
    text = f"Its quota is reserved; it starts when the cluster's admission check {waits_for} is ready."
    return Explanation("checked", text, f"It starts automatically when the check is ready. {CONTACT_OPERATORS}")


def job_edited(job: Job) -> Explanation | None:
    """The portal requests as many pods at once as the Job has completions."""
    requested = job.completions or 1
    if job.parallelism >= requested:
        return None
    less = f"it creates {plural(job.parallelism, 'pod')} at a time instead of {requested}"
    text = f"Its Job was edited in the cluster, outside the portal: {less}."
    return Explanation("job_edited", text, "Stop it and start it again.", actions=STOP_OR_CHANGE)


def deactivated(queue: KueueWorkload) -> Explanation:
    """Kueue does not process the workload: Kueue itself deactivated it, and then says why, or another client did."""
    refused = _listed(name for name, state in queue.checks.items() if state == "Rejected")
    evicted = queue.condition("Evicted")
    own = evicted.reason if evicted is not None and evicted.is_true else ""
    if refused or own.startswith("DeactivatedDueTo") or queue.is_true("DeactivationTarget"):
        limit = "it was requeued too often" if "RequeuingLimit" in own else ""
        why = f"the cluster's admission check {refused} rejected it" if refused else limit
        text = f"Kueue deactivated it{f': {why}' if why else ''}."
        return Explanation("deactivated", text, "Stop it and start it again, or ask an operator.", is_final=True)
    by = f" by {queue.inactive_by}" if queue.inactive_by else ""
    at = f" at {date_and_time(queue.inactive_since)}" if queue.inactive_since else ""
    text = f"It was deactivated in the cluster{by}{at}, outside the portal: its Kueue Workload was set to inactive."
    remedy = "Ask an operator why. It continues if the Workload is set to active, or if you stop it and start it again."
    raw = f"spec.active: false{by}"
    return Explanation("deactivated", text, remedy, raw, "the Kueue Workload")


def draining(why: str) -> Explanation:
    """Maintenance takes the run off its node. `why`: a sentence."""
    text = f"It is being moved off its node. {why}"
    return Explanation("draining", text, "It is queued again automatically.")


def mirror_outdated(at: datetime, problem: str) -> Explanation:
    """The mirror is older than the Job of this run."""
    text = f"No cluster updates since {date_and_time(at)}; the status is unknown."
    remedy = "Contact an operator. The cluster continues to process submitted workloads."
    return Explanation("mirror_stale", text, remedy, problem, "the mirror", facts={"heard_at": at.isoformat()})


def component_silent(component: str, at: datetime, raw: str, raw_from: str) -> Explanation:
    """`raw`: the last message of the cluster about the run, which may be outdated."""
    said = f"{COMPONENTS[component]} has not responded since {date_and_time(at)}. {_UNTIL[component]}"
    remedy = f"{NOT_YOUR_SETTINGS} It continues when that component responds."
    return Explanation(f"{component}_silent", said, remedy, raw, raw_from, facts={"silent_since": at.isoformat()})


def kubelet_silent(node: str, at: datetime) -> Explanation:
    text = f"Node {node} got the pod at {date_and_time(at)} and has reported nothing about it since."
    return Explanation("kubelet_silent", text, "Contact an operator: the kubelet of that node may be down.")


def no_pod(at: datetime) -> Explanation:
    """The workload was admitted at that time, but there is no pod and no message explains why."""
    text = f"Admitted at {date_and_time(at)}, but its pod has not been created since."
    return Explanation("no_pod", text, "Contact an operator: the cluster's Job controller may be down.")


def _listed(names: Iterable[str]) -> str:
    return " and ".join(sorted(names))
