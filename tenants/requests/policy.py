"""Who may request quota, and which lines are possible. Pure: (actor, row, facts) → Refusal or None."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta

from accounts.core.actor import Actor
from accounts.core.policy import scope_refusal
from accounts.models import Scope
from portal.core.errors import Refusal
from portal.core.plain_text import hidden_refusal
from portal.ui.text import plural_form
from tenants.grants.types import ClassFacts
from tenants.members.policy import MANAGING_ROLES, Standing
from tenants.requests.types import ReclaimLine, RequestedLine

LINES_MAX = 20
UNITS_MAX = 100_000
PERIOD_MAX = timedelta(days=3 * 366)
JUSTIFICATION_MAX = 2000


def may_file(by: Actor, standing: Standing) -> Refusal | None:
    if refusal := scope_refusal(by, Scope.REQUEST):
        return refusal
    if by.user is not None and standing.role not in MANAGING_ROLES:
        return Refusal(
            "not_allowed", "Only owners and managers of the team can request quota. Ask one of them.", status=403
        )
    if standing.wanted == "closed":
        return Refusal("closed", "This team is being closed and cannot request quota.", status=409)
    return None


def class_refusal(facts: ClassFacts) -> Refusal | None:
    """Returns why no line at all can be requested for this class now. The form shows it instead of a field."""
    if facts.is_reclaimed:
        text = (
            f"A reduction of {facts.name} is pending and is decided first. State what your team needs in a comment on "
            "that request."
        )
        return Refusal("already_pending", text, "gpu_class", status=409)
    if facts.is_pending:
        text = f"A request for {facts.name} is already pending. Withdraw it, or wait for the decision."
        return Refusal("already_pending", text, "gpu_class", status=409)
    if facts.life_cycle in ("draft", "retired"):
        instead = f" Choose its successor, {facts.successor}." if facts.successor else ""
        return Refusal("class_closed", f"{facts.name} is not open for requests.{instead}", "gpu_class")
    return None


def line_refusal(asked: RequestedLine, facts: ClassFacts | None, *, now: datetime) -> Refusal | None:
    """Returns why this line is not possible. `facts` None: no such class in the catalog."""
    if facts is None:
        return Refusal("unknown_class", f"There is no class '{asked.gpu_class}'. See the catalog.", "gpu_class")
    if asked.kind not in ("base", "boost"):
        return Refusal("bad_kind", "Choose base (new total) or boost (temporary increase).", "kind")
    if not 0 <= asked.units <= UNITS_MAX:
        return Refusal("bad_units", f"Enter 0 to {UNITS_MAX:,} {plural_form(facts.unit)}.", "units")
    if asked.kind == "boost" and asked.units == 0:
        return Refusal("bad_units", f"Enter at least 1 {facts.unit} for a temporary increase.", "units")
    if asked.ends <= asked.starts or asked.ends <= now:
        return Refusal("bad_period", "The end of the period must be after its start and in the future.", "ends_at")
    if asked.ends - asked.starts > PERIOD_MAX:
        return Refusal("bad_period", "The period can be at most three years.", "ends_at")
    if refusal := class_refusal(facts):
        return refusal
    if refusal := growth_refusal(facts, kind=asked.kind, units=asked.units):
        return refusal
    if asked.kind == "base" and asked.units == 0 and facts.held == 0:
        return Refusal("nothing_to_release", f"Your team has no quota of {facts.name} to release.", "units")
    return None


def growth_refusal(facts: ClassFacts, *, kind: str, units: int) -> Refusal | None:
    """Checked when a line is filed and again when it is decided: the class may have been retired in between."""
    if facts.life_cycle == "active" or kind == "reclaim" or units <= (0 if kind == "boost" else facts.held):
        return None
    word = "being retired" if facts.life_cycle == "retiring" else facts.life_cycle
    instead = f"Choose its successor, {facts.successor}." if facts.successor else "Choose another class."
    text = f"{facts.name} is {word}: the team has {facts.held} and cannot get more. {instead}"
    return Refusal("class_retiring", text, "units", status=409)


def request_refusal(lines: Collection[RequestedLine | ReclaimLine], justification: str) -> Refusal | None:
    if not 1 <= len(lines) <= LINES_MAX:
        return Refusal("bad_lines", f"Enter units for at least one class (at most {LINES_MAX}).", "lines")
    if len({line.gpu_class for line in lines}) < len(lines):
        return Refusal("bad_lines", "A request can have only one line per class.", "lines")
    if not 1 <= len(justification.strip()) <= JUSTIFICATION_MAX:
        text = f"Enter a justification of at most {JUSTIFICATION_MAX:,} characters."
        return Refusal("bad_justification", text, "justification")
    return hidden_refusal("justification", justification)


def may_withdraw(by: Actor, standing: Standing, *, filed_by: int, is_reclaim: bool = False) -> Refusal | None:
    """`is_reclaim`: the request reduces quota; the team cannot withdraw it."""
    if refusal := scope_refusal(by, Scope.REQUEST):
        return refusal
    if by.user is None or by.user_id == filed_by:
        return None
    if is_reclaim:
        text = (
            "Only the person who proposed this reduction can withdraw it. State what your team needs in a comment on "
            "this request."
        )
        return Refusal("not_allowed", text, status=403)
    if standing.role in MANAGING_ROLES:
        return None
    return Refusal(
        "not_allowed", "Only the requester, an owner or a manager of the team can withdraw a request.", status=403
    )


def refusal_in_line(index: int, found: Refusal | None) -> Refusal | None:
    """Returns the refusal of one line, with the field named as in the list of lines."""
    return replace(found, field=f"lines[{index}].{found.field}") if found else None
