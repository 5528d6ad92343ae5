"""What an approver says about a line, and what that comes to. Pure: values in, values out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from portal.errors import Refusal
from tenants import policy
from tenants.models import QuotaLine


@dataclass(frozen=True)
class Decision:
    """One line's answer. `units`, `starts` and `ends` None: as asked. `reason` is compulsory when it is no.

    `measured`: facts about the class that apps above know, kept with the line beside those of this app.
    """

    line_id: int
    approve: bool
    units: int | None = None
    starts: datetime | None = None
    ends: datetime | None = None
    reason: str = ""
    measured: Mapping[str, Any] = field(default_factory=dict)


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


def settle(line: QuotaLine, decision: Decision, now: datetime) -> Settled:
    """The decision with what it leaves open filled in from what was asked."""
    return Settled(
        line,
        decision,
        units=line.asked_units if decision.units is None else decision.units,
        starts=max(decision.starts or line.asked_from, now),
        ends=decision.ends or line.asked_until,
    )


def refusal(one: Settled, now: datetime) -> Refusal | None:
    reason = one.decision.reason.strip()
    if not one.decision.approve:
        return policy.may_deny(reason=reason)
    is_less = one.units < one.line.asked_units
    return policy.may_approve(
        units=one.units, starts=one.starts, ends=one.ends, now=now, is_less=is_less, reason=reason
    )
