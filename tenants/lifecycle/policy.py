"""Whether a team may be suspended, resumed or closed, and with which times. Pure; used by buttons and by the action."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from accounts.core.actor import Actor
from portal.core.errors import Refusal
from portal.ui.text import time_with_zone
from tenants.core import policy

ACTIVE, SUSPENDED, CLOSED = NAMESPACE_STATES = ("active", "suspended", "closed")
GRACE_HOURS, GRACE_HOURS_MAX = 24, 14 * 24
KEEP_DAYS, KEEP_DAYS_MAX = 30, 90


@dataclass(frozen=True)
class NamespaceLifecycle:
    """The wanted state of a namespace, and the times of its end if it is closed."""

    wanted: str
    closes_at: datetime | None = None
    volumes_until: datetime | None = None
    gone_at: datetime | None = None


@dataclass(frozen=True)
class ClosingTerms:
    """Terms of closing: how long running workloads continue, and how long volumes are kept after that."""

    grace_hours: int = GRACE_HOURS
    keep_days: int = KEEP_DAYS

    def instants(self, at: datetime) -> tuple[datetime, datetime]:
        closes_at = at + timedelta(hours=self.grace_hours)
        return closes_at, closes_at + timedelta(days=self.keep_days)


def lifecycle_state(life: NamespaceLifecycle, *, at: datetime) -> str:
    """active, suspended, closing (in its grace period, may be resumed) or closed."""
    if life.wanted != CLOSED:
        return life.wanted
    return "closing" if life.closes_at is not None and life.closes_at > at else "closed"


def may_set_state(by: Actor, life: NamespaceLifecycle, *, to: str, terms: ClosingTerms, at: datetime) -> Refusal | None:
    return policy.may_operate(by) or _unknown(to) or _bad_terms(terms) or _over(life, to, at)


def may_resume_namespace(by: Actor, life: NamespaceLifecycle, *, at: datetime) -> Refusal | None:
    return policy.may_operate(by) or _over(life, ACTIVE, at)


def may_close_namespace(by: Actor, life: NamespaceLifecycle, *, at: datetime) -> Refusal | None:
    return policy.may_operate(by) or _over(life, CLOSED, at)


def _unknown(to: str) -> Refusal | None:
    if to in NAMESPACE_STATES:
        return None
    return Refusal("unknown_state", f"Choose one of {', '.join(NAMESPACE_STATES)}. Nothing was changed.", "wanted")


def _bad_terms(terms: ClosingTerms) -> Refusal | None:
    if not 0 <= terms.grace_hours <= GRACE_HOURS_MAX:
        text = f"Enter a grace period of 0 to {GRACE_HOURS_MAX} hours (14 days), not {terms.grace_hours}."
        return Refusal("bad_grace", text, "grace_hours")
    if not 0 <= terms.keep_days <= KEEP_DAYS_MAX:
        text = f"Enter 0 to {KEEP_DAYS_MAX} days for keeping volumes, not {terms.keep_days}."
        return Refusal("bad_keep", text, "keep_days")
    return None


def _over(life: NamespaceLifecycle, to: str, at: datetime) -> Refusal | None:
    if life.wanted != CLOSED:
        return None
    moment = time_with_zone(life.closes_at) if life.closes_at else "an earlier day"
    if lifecycle_state(life, at=at) == "closed":
        text = f"This team was closed on {moment} and cannot be resumed. Create a new team instead."
        return Refusal("closed", text, status=409)
    if to != ACTIVE:
        text = f"This team is being closed: running workloads stop on {moment}. Resume the team first to change this."
        return Refusal("closed", text, status=409)
    return None
