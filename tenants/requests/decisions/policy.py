"""Who may decide a line, which values a decision results in, and what is refused. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from accounts.core.actor import Actor
from accounts.core.policy import scope_refusal
from accounts.models import Role, Scope
from portal.core.errors import Refusal
from portal.core.plain_text import hidden_refusal
from tenants.approvers.policy import ApproverRight, ApproverRights
from tenants.core.policy import REASON_MAX
from tenants.grants.types import Overcommit
from tenants.members.policy import Standing
from tenants.models import GRACE, GRACE_MAX, Grant, QuotaLine
from tenants.requests.decisions.types import DecidableLine, Decision
from tenants.requests.policy import PERIOD_MAX, UNITS_MAX
from tenants.requests.reclaims import policy as reclaim_policy

GRACE_HOURS_MAX = GRACE_MAX // timedelta(hours=1)


def with_delegator(decision: Decision, lender: ApproverRight | None) -> Decision:
    """Records for which approver a delegate decided."""
    if lender is None:
        return decision
    return replace(decision, measured={**decision.measured, "deputy_for": lender.name})


@dataclass(frozen=True)
class ResolvedDecision:
    line: QuotaLine
    decision: Decision
    units: int
    starts: datetime
    ends: datetime
    grace: timedelta = GRACE
    # Of a reduction: the total that is granted at `starts`.
    held: int = 0

    @property
    def is_total(self) -> bool:
        """True if it replaces the total that is granted then; an increase is added to that total."""
        return self.line.kind != QuotaLine.Kind.BOOST

    @property
    def is_reclaim(self) -> bool:
        return self.line.kind == QuotaLine.Kind.RECLAIM

    def cutting(self, base: Grant | None) -> ResolvedDecision:
        """Adds the total granted at `starts`. The rest of that grant keeps its grace unless the decision sets one."""
        if base is None:
            return self
        return replace(self, held=base.units, grace=base.grace if self.decision.grace_hours is None else self.grace)


def may_see_facts(mine: ApproverRights, standing: Standing) -> Refusal | None:
    """Whether the facts of a decision are shown: to approvers and their delegates who are not in the team."""
    if mine and standing.role == "":
        return None
    text = "Permission denied: only approvers who are not in the team see the facts of a decision."
    return Refusal("not_allowed", text, status=403)


def resolve(line: QuotaLine, decision: Decision, now: datetime) -> ResolvedDecision:
    """Returns the decision with missing values filled in from the request."""
    hours = decision.grace_hours
    return ResolvedDecision(
        line,
        decision,
        units=line.asked_units if decision.units is None else decision.units,
        starts=max(decision.starts or line.asked_from, now),
        ends=decision.ends or line.asked_until,
        # A value out of bounds is refused by `decision_refusal`.
        grace=GRACE if hours is None or grace_refusal(hours) else timedelta(hours=hours),
    )


def decision_refusal(one: ResolvedDecision, class_name: str, now: datetime) -> Refusal | None:
    reason, line = one.decision.reason.strip(), one.line
    if found := grace_refusal(one.decision.grace_hours):
        return found
    if not one.decision.approve:
        return may_deny(reason=reason)
    if one.is_reclaim:
        asked = (line.asked_units, line.asked_from, line.asked_until)
        answer = reclaim_policy.ReclaimDecision(one.units, one.starts, one.ends, *asked, held=one.held)
        if found := reclaim_policy.reclaim_decision_refusal(answer, class_name):
            return found
    is_less = one.units < line.asked_units
    return may_approve(units=one.units, starts=one.starts, ends=one.ends, now=now, is_less=is_less, reason=reason)


def grace_refusal(hours: int | None) -> Refusal | None:
    """`hours` None: the default grace, never refused."""
    if hours is None or 0 <= hours <= GRACE_HOURS_MAX:
        return None
    text = f"Enter a grace period of 0 to {GRACE_HOURS_MAX} hours ({GRACE_HOURS_MAX // 24} days)."
    return Refusal("bad_grace", text, "grace_hours")


def may_decide(by: Actor, line: DecidableLine) -> Refusal | None:
    """Allows an approver of this class or a delegate, never the requester or a team member. Approving needs more."""
    if refusal := scope_refusal(by, Scope.DECIDE):
        return refusal
    if not (by.has_role(Role.APPROVER) or line.is_deputy):
        return Refusal("not_allowed", "Only approvers can decide requests.", status=403)
    if by.user_id == line.filed_by:
        return Refusal("own_request", "You cannot decide your own request. Another approver decides it.", status=403)
    if line.role:
        return Refusal(
            "own_team", "You cannot decide requests of your own team. Another approver decides them.", status=403
        )
    if line.decides is not None and line.gpu_class not in line.decides:
        return Refusal(
            "not_your_class",
            f"You do not decide requests for {line.class_name}. Other approvers decide them.",
            status=403,
        )
    if line.state != "pending":
        return Refusal(
            "already_decided",
            f"This line is already {line.state}. Nothing was changed. Reload the page to see who decided it and when.",
            status=409,
        )
    return None


def may_grant(standing: Standing) -> Refusal | None:
    """The lines of a closed team can only be denied."""
    if standing.wanted == "closed":
        return Refusal("closed", "This team is being closed and cannot get quota. Deny the request.", status=409)
    return None


def may_approve(
    *, units: int, starts: datetime, ends: datetime, now: datetime, is_less: bool, reason: str
) -> Refusal | None:
    """`is_less`: fewer units than requested."""
    if not 0 <= units <= UNITS_MAX:
        return Refusal("bad_units", f"Enter 0 to {UNITS_MAX:,} units.", "units")
    if ends <= max(starts, now):
        return Refusal("bad_period", "The period ends before it starts. Choose a later end.", "ends_at")
    if ends - starts > PERIOD_MAX:
        return Refusal("bad_period", "The period can be at most three years.", "ends_at")
    if is_less and not reason:
        return Refusal(
            "reason_missing",
            "Enter a comment on why you approve less than requested.",
            "reason",
        )
    return hidden_refusal("reason", reason)


def may_over_promise(excesses: Collection[Overcommit], *, is_ticked: bool, reason: str) -> Refusal | None:
    """Allows exceeding the limit of the class only if it is selected, and with a reason, which is recorded."""
    if not excesses:
        return None
    worst = max(excesses, key=lambda excess: excess.units)
    if worst.limit is None:
        what = f"The capacity of {worst.class_name} is unknown: no current cluster data and no allocation limit."
    else:
        what = f"This exceeds the allocation limit of {worst.class_name} ({worst.limit}) by {worst.units}."
    if not is_ticked:
        return Refusal(
            "over_promised",
            f"{what} Select 'Overcommit anyway' and enter a comment, or approve fewer units.",
            "over_promise",
            409,
        )
    if not reason.strip():
        return Refusal("reason_missing", f"{what} Enter a comment that explains the overcommit.", "over_promise_reason")
    return hidden_refusal("over_promise_reason", reason)


def may_deny(*, reason: str) -> Refusal | None:
    if 1 <= len(reason.strip()) <= REASON_MAX:
        return hidden_refusal("reason", reason)
    return Refusal(
        "reason_missing", f"Enter a comment of 1 to {REASON_MAX} characters. It is shown to the team.", "reason"
    )
