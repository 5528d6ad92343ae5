"""What holds a workload back in the queue beside quota and nodes: stopped queues, admission checks, retries. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from cluster.reads.observed import KueueWorkload
from portal.ui.text import date_and_time, plural
from workloads.core.observation import LocalQueueState
from workloads.status.explain.types import CONTACT_OPERATORS, Explanation

_CANNOT = re.compile(r"^Can't admit new workloads: ")
# Kueue's reasons for taking work out again, as people say it.
_OUT = {"PodsReadyTimeout": "it was not ready in time"}


def queue_hold(at: LocalQueueState | None, queue: KueueWorkload, message: str, now: datetime) -> Explanation | None:
    """By something else than quota and nodes. `message`: what Kueue says of the wait; None: by nothing known here."""
    if queue.requeue_at is not None and queue.requeue_at > now:
        evicted = queue.condition("Evicted")
        times = queue.requeue_count or sum(queue.evictions.values())
        reason = evicted.reason if evicted is not None and evicted.is_true else ""
        return _put_back(queue.requeue_at, checks=queue.checks, reason=reason, times=times)
    if queue.is_true("QuotaReserved"):
        return _reserved(queue.checks)
    return _closed(message, why=at.why if at else "", is_stopped=at is not None and at.is_stopped)


def _closed(message: str, *, why: str, is_stopped: bool) -> Explanation | None:
    """Kueue says that a queue is inactive. `why`: its own word about the team's queue, as the mirror has it; "" it is
    active there, or nobody knows.
    """
    if "is inactive" not in message and "is stopped" not in message:
        return None
    if is_stopped or not why or message.startswith("LocalQueue"):
        text = "Your team's queue is held: nothing new starts, what runs goes on."
        remedy = "Ask the operators why, and until when."
        return Explanation("queue_held", text, remedy, message, "Kueue")
    said = _CANNOT.sub("", why).rstrip(".")
    text = f"Your team's queue cannot admit anything: it {said}." if said.startswith("references") else ""
    return Explanation(
        "queue_inactive",
        text or f"Your team's queue cannot admit anything: {said}.",
        "Tell the operators: nothing that you chose is wrong.",
        f"{message}\n{why}",
        "Kueue",
    )


def _put_back(at: datetime, *, checks: Mapping[str, str], reason: str, times: int) -> Explanation:
    """Kueue tries again at that moment and not before. `reason`: for which it was taken out, as Kueue names it."""
    asked = _listed(name for name, state in checks.items() if state == "Retry")
    why = f"the cluster's admission check {asked} asked for a later try" if asked else _OUT.get(reason, "")
    when = f"{date_and_time(at)}:{at:%S}"
    often = f"It was put back {plural(times, 'time')} before. " if times else ""
    facts: dict[str, Any] = {"again_at": at.isoformat()}
    text = f"Put back{f': {why}' if why else ''}. {often}The next try is at {when}."
    remedy = f"Kueue tries again by itself at {when}."
    return Explanation("put_back", text, remedy, facts=facts | ({"times": times} if times else {}))


def _reserved(checks: Mapping[str, str]) -> Explanation:
    """It has its units, and is not admitted yet."""
    waits_for = _listed(name for name, state in checks.items() if state != "Ready")
    if not waits_for:
        return Explanation("reserved", "Its units are reserved; it starts in a moment.", "It starts by itself.")
    text = f"Its units are reserved; it starts when the cluster's admission check {waits_for} agrees."
    return Explanation("checked", text, f"It starts by itself when that agrees. {CONTACT_OPERATORS}")


def deactivated(checks: Mapping[str, str]) -> Explanation:
    """Kueue does not look at it any more."""
    refused = _listed(name for name, state in checks.items() if state == "Rejected")
    why = f": the cluster's admission check {refused} refused it" if refused else ""
    text = f"The queue system put it aside{why}."
    return Explanation("deactivated", text, "Stop it and start it again.", is_final=True)


def mirror_outdated(at: datetime, problem: str) -> Explanation:
    """The mirror is older than this run's Job."""
    text = f"The portal has not heard of the cluster since {date_and_time(at)}, so it cannot say how this is doing."
    remedy = "Tell the operators; what was asked of the cluster is done there all the same."
    return Explanation("mirror_stale", text, remedy, problem, "the mirror", facts={"heard_at": at.isoformat()})


def no_pod(at: datetime) -> Explanation:
    """Admitted at that time. Nobody says why nothing comes of it."""
    text = f"Units were assigned at {date_and_time(at)}, and its pod has not been made since."
    return Explanation("no_pod", text, "Tell the operators: the cluster's Job controller may be down.")


def _listed(names: Iterable[str]) -> str:
    return " and ".join(sorted(names))
