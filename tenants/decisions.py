"""What an approver says about a line, and what that comes to. Pure: values in, values out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from portal.errors import Refusal
from tenants import line_policy, policy
from tenants.deputy_policy import Right
from tenants.models import GRACE, Grant, QuotaLine


@dataclass(frozen=True)
class Decision:
    """One line's answer. `units`, `starts` and `ends` None: as asked. `reason` is compulsory when it is no.

    `grace_hours`: how long what runs at the end goes on; None: a day, and where units are taken back as the grant that
    is cut states. `measured`: facts about the class that apps above know, kept with the line beside those of this app.
    """

    line_id: int
    approve: bool
    units: int | None = None
    starts: datetime | None = None
    ends: datetime | None = None
    reason: str = ""
    measured: Mapping[str, Any] = field(default_factory=dict)
    grace_hours: int | None = None


def signed(decision: Decision, lender: Right | None) -> Decision:
    """The record says for whom a deputy decided."""
    if lender is None:
        return decision
    return replace(decision, measured={**decision.measured, "deputy_for": lender.name})


@dataclass(frozen=True)
class OverPromise:
    """The approver's tick and reason for promising more than a class can give."""

    is_ticked: bool = False
    reason: str = ""


@dataclass(frozen=True)
class Settled:
    line: QuotaLine
    decision: Decision
    units: int
    starts: datetime
    ends: datetime
    grace: timedelta = GRACE
    # Of a line that takes back: the total that is granted at `starts`.
    held: int = 0

    @property
    def is_total(self) -> bool:
        """It replaces the total that is granted then; a boost comes on top."""
        return self.line.kind != QuotaLine.Kind.BOOST

    @property
    def is_reclaim(self) -> bool:
        return self.line.kind == QuotaLine.Kind.RECLAIM

    def cutting(self, base: Grant | None) -> Settled:
        """With the total that is granted at `starts`. What is left of it keeps its grace unless one was said."""
        if base is None:
            return self
        return replace(self, held=base.units, grace=base.grace if self.decision.grace_hours is None else self.grace)


def settle(line: QuotaLine, decision: Decision, now: datetime) -> Settled:
    """The decision with what it leaves open filled in from what was asked."""
    hours = decision.grace_hours
    return Settled(
        line,
        decision,
        units=line.asked_units if decision.units is None else decision.units,
        starts=max(decision.starts or line.asked_from, now),
        ends=decision.ends or line.asked_until,
        # What is out of bounds is refused, see below.
        grace=GRACE if hours is None or line_policy.grace_refusal(hours) else timedelta(hours=hours),
    )


def refusal(one: Settled, class_name: str, now: datetime) -> Refusal | None:
    reason, line = one.decision.reason.strip(), one.line
    if not one.decision.approve:
        return policy.may_deny(reason=reason)
    if one.is_reclaim:
        asked = (line.asked_units, line.asked_from, line.asked_until)
        answer = line_policy.Answer(one.units, one.starts, one.ends, *asked, held=one.held)
        if found := line_policy.taking_refusal(answer, class_name):
            return found
    if found := line_policy.grace_refusal(one.decision.grace_hours):
        return found
    is_less = one.units < line.asked_units
    return policy.may_approve(
        units=one.units, starts=one.starts, ends=one.ends, now=now, is_less=is_less, reason=reason
    )
