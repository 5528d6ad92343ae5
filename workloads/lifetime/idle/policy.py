"""Decides whether a notebook is idle, and the next step. Pure: the server's answer and earlier warnings → a verdict.

Unknown is not idle: a server that does not respond is never stopped, nor is one with a busy kernel. An open browser tab
alone is not activity: JupyterLab calls its own API every few seconds, so API calls count only while no browser is
connected to a kernel. Computation in a terminal without output cannot be detected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from cluster.client.jupyter import NotebookActivity
from portal.core.errors import Refusal
from portal.core.plain_text import hidden_refusal
from portal.ui.text import date_and_time, plural
from workloads.core.policy import RunFacts

LEAD = timedelta(minutes=10)
# The time between two checks: until the rule could apply, but short enough to show recent activity; shorter after a
# warning. The clocks of workers may differ a little, so a check that came too early is not repeated at once.
LOOK_EVERY, LOOK_WITHIN, SOONEST = timedelta(minutes=1), timedelta(minutes=10), timedelta(seconds=5)
KEEP_HOURS_MOST = 24
REASON_LIMIT = 200


class IdleStep(StrEnum):
    UNKNOWN = "unknown"
    IN_USE = "in use"
    IDLE = "idle"
    WARN = "warn"
    STOP = "stop"


@dataclass(frozen=True)
class IdleFacts:
    """The rule, and earlier checks and warnings. `limit` None: no stop; the rule of idle GPUs wants the answers."""

    limit: timedelta | None
    answered_at: datetime | None = None
    warned_at: datetime | None = None
    stops_at: datetime | None = None
    kept_until: datetime | None = None


@dataclass(frozen=True)
class IdleVerdict:
    """`idle_since` None: in use, or unknown. `stops_at`: the announced stop, None if there is none. `again_at`: time of
    the next check.
    """

    step: IdleStep
    again_at: datetime
    idle_since: datetime | None = None
    stops_at: datetime | None = None


def judge(activity: NotebookActivity | None, watched: IdleFacts, *, now: datetime) -> IdleVerdict:
    """`activity` None: the server did not answer."""
    if activity is None:
        is_new = watched.answered_at is not None and now - watched.answered_at < LOOK_WITHIN
        return IdleVerdict(IdleStep.UNKNOWN, now + (LOOK_EVERY if is_new else LOOK_WITHIN), stops_at=watched.stops_at)
    is_computing = any(kernel.is_computing for kernel in activity.kernels)
    if watched.limit is None:
        step, since = (IdleStep.IN_USE, None) if is_computing else (IdleStep.IDLE, min(last_use(activity), now))
        return IdleVerdict(step, now + LOOK_WITHIN, since)
    lead = lead_of(watched.limit)
    if is_computing:
        return IdleVerdict(IdleStep.IN_USE, _soon(now + watched.limit - lead, now))
    since = min(last_use(activity), now)
    warn_at = since + watched.limit - lead
    if watched.kept_until is not None:
        warn_at = max(warn_at, watched.kept_until)
    if now < warn_at:
        return IdleVerdict(IdleStep.IDLE, _soon(warn_at, now), since)
    if watched.warned_at is None or watched.stops_at is None or since > watched.warned_at:
        # After a late warning, users have as much time as after any other.
        stops_at = max(since + watched.limit, now + lead)
        return IdleVerdict(IdleStep.WARN, _soon(stops_at, now, most=LOOK_EVERY), since, stops_at)
    stops_at = max(watched.stops_at, since + watched.limit)
    if now < stops_at:
        return IdleVerdict(IdleStep.IDLE, _soon(stops_at, now, most=LOOK_EVERY), since, stops_at)
    return IdleVerdict(IdleStep.STOP, now + LOOK_EVERY, since, stops_at)


def lead_of(limit: timedelta) -> timedelta:
    """How long before the stop users are warned."""
    return min(LEAD, limit / 5)


def last_use(activity: NotebookActivity) -> datetime:
    """Returns the last use of kernels and terminals; of the API too if no browser is connected (see the module
    docstring).
    """
    moments = [kernel.last_activity for kernel in activity.kernels]
    moments += activity.terminals
    if not moments or not is_connected(activity):
        moments.append(activity.last_activity)
    return max(moments)


def is_connected(activity: NotebookActivity) -> bool:
    return activity.connections > 0 or any(kernel.connections for kernel in activity.kernels)


def _soon(moment: datetime, now: datetime, *, most: timedelta = LOOK_WITHIN) -> datetime:
    return min(max(moment, now + SOONEST), now + most)


# ---- evidence on pages -----------------------------------------------------------------------------------------------


def evidence(activity: NotebookActivity) -> dict[str, Any]:
    """Returns JSON with numbers and a few known words, but no text that a notebook's server could invent."""
    states = Counter("computing" if kernel.is_computing else "idle" for kernel in activity.kernels)
    return {
        "computing": states["computing"],
        "idle": states["idle"],
        "terminals": len(activity.terminals),
        "connections": max(activity.connections, sum(kernel.connections for kernel in activity.kernels)),
    }


def evidence_sentence(found: Mapping[str, Any], *, last_activity: datetime | None, asked_at: datetime) -> str:
    """Returns the evidence as a list of facts: last activity …; 2 kernels idle; checked at …"""
    parts = [] if last_activity is None else [f"last activity {date_and_time(last_activity)}"]
    for state in ("computing", "idle"):
        if found.get(state):
            parts.append(f"{plural(found[state], 'kernel')} {state}")
    if not found.get("computing") and not found.get("idle"):
        parts.append("no kernel")
    if found.get("terminals"):
        parts.append(plural(found["terminals"], "terminal"))
    if found.get("connections"):
        parts.append(plural(found["connections"], "browser connection"))
    return "; ".join([*parts, f"checked at {date_and_time(asked_at)}"])


# ---- keeping an idle notebook ----------------------------------------------------------------------------------------


def may_keep(run: RunFacts, *, is_watched: bool, hours: int = 1, reason: str | None = None) -> Refusal | None:
    """Checks the run; the user's permission is checked by `policy.may_manage`. `reason` None: not entered yet, for the
    button.
    """
    if run.is_over or run.is_stopping:
        return Refusal("not_running", "This notebook is not running and cannot be kept.", status=409)
    if not is_watched:
        text = "No rule stops this notebook when it is idle. It need not be kept."
        return Refusal("no_idle_rule", text, status=409)
    if not 1 <= hours <= KEEP_HOURS_MOST:
        text = f"{hours} h requested. Enter 1 to {KEEP_HOURS_MOST} h; you can keep it again later."
        return Refusal("bad_hours", text, "hours")
    if reason is not None and not 1 <= len(reason.strip()) <= REASON_LIMIT:
        text = f"Enter a reason of 1 to {REASON_LIMIT} characters: other users may wait for the notebook's units."
        return Refusal("no_reason", text, "reason")
    if refusal := hidden_refusal("reason", reason or ""):
        return refusal
    return None
