"""Who may ask for quota, and which lines are possible. Pure: (actor, row, facts) → Refusal or None."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta

from accounts.core.actor import Actor
from accounts.core.policy import scope_refusal
from accounts.models import Scope
from portal.core.errors import Refusal
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
        return Refusal("not_allowed", "Quota is asked for by the owners and managers of the team; ask one.", status=403)
    if standing.wanted == "closed":
        return Refusal("closed", "This team is being closed; nothing can be asked for any more.", status=409)
    return None


def class_refusal(facts: ClassFacts) -> Refusal | None:
    """Can nothing at all be asked of this class now? The form shows why instead of a field."""
    if facts.is_reclaimed:
        text = f"Some of {facts.name} may be taken back; that is decided first. Say under that request what you need."
        return Refusal("already_pending", text, "gpu_class", status=409)
    if facts.is_pending:
        text = f"Your team already waits for a decision about {facts.name}; withdraw that line first or wait for it."
        return Refusal("already_pending", text, "gpu_class", status=409)
    if facts.life_cycle in ("draft", "retired"):
        instead = f" Choose its successor, {facts.successor}." if facts.successor else ""
        return Refusal("class_closed", f"{facts.name} is not open for requests.{instead}", "gpu_class")
    return None


def line_refusal(asked: RequestedLine, facts: ClassFacts | None, *, now: datetime) -> Refusal | None:
    """Is this line possible at all? `facts` None: no such class in the catalog."""
    if facts is None:
        return Refusal("unknown_class", f"There is no class '{asked.gpu_class}'; see the catalog.", "gpu_class")
    if asked.kind not in ("base", "boost"):
        return Refusal("bad_kind", "A line is a new total (base) or a boost.", "kind")
    if not 0 <= asked.units <= UNITS_MAX:
        return Refusal(
            "bad_units", f"Say a whole number of {plural_form(facts.unit)} from 0 to {UNITS_MAX:,}.", "units"
        )
    if asked.kind == "boost" and asked.units == 0:
        return Refusal("bad_units", f"A boost adds at least 1 {facts.unit}.", "units")
    if asked.ends <= asked.starts or asked.ends <= now:
        return Refusal("bad_period", "The period has to end after its start, and in the future.", "ends_at")
    if asked.ends - asked.starts > PERIOD_MAX:
        return Refusal("bad_period", "A period has at most three years; ask again later.", "ends_at")
    if refusal := class_refusal(facts):
        return refusal
    if refusal := growth_refusal(facts, kind=asked.kind, units=asked.units):
        return refusal
    if asked.kind == "base" and asked.units == 0 and facts.held == 0:
        return Refusal("nothing_to_release", f"Your team holds nothing of {facts.name}.", "units")
    return None


def growth_refusal(facts: ClassFacts, *, kind: str, units: int) -> Refusal | None:
    """Asked when a line is filed and again when it is decided: the class may have been retired in between."""
    if facts.life_cycle == "active" or kind == "reclaim" or units <= (0 if kind == "boost" else facts.held):
        return None
    word = "being retired" if facts.life_cycle == "retiring" else facts.life_cycle
    instead = f"Choose its successor, {facts.successor}." if facts.successor else "Choose another class."
    text = f"{facts.name} is {word}: the team holds {facts.held}, more is not given any more. {instead}"
    return Refusal("class_retiring", text, "units", status=409)


def request_refusal(lines: Collection[RequestedLine | ReclaimLine], justification: str) -> Refusal | None:
    if not 1 <= len(lines) <= LINES_MAX:
        return Refusal("bad_lines", f"A request has 1 to {LINES_MAX} lines.", "lines")
    if len({line.gpu_class for line in lines}) < len(lines):
        return Refusal("bad_lines", "A class stands in one line of a request only.", "lines")
    if not 1 <= len(justification.strip()) <= JUSTIFICATION_MAX:
        text = f"Say in up to {JUSTIFICATION_MAX:,} characters what it is for; approvers decide by it."
        return Refusal("bad_justification", text, "justification")
    return None


def may_withdraw(by: Actor, standing: Standing, *, filed_by: int, is_reclaim: bool = False) -> Refusal | None:
    """`is_reclaim`: it takes units back, which the team cannot undo by itself."""
    if refusal := scope_refusal(by, Scope.REQUEST):
        return refusal
    if by.user is None or by.user_id == filed_by:
        return None
    if is_reclaim:
        text = "Taking back is withdrawn by who filed it. The team says under the request what it needs."
        return Refusal("not_allowed", text, status=403)
    if standing.role in MANAGING_ROLES:
        return None
    return Refusal("not_allowed", "A request is withdrawn by who filed it, or by an owner or manager.", status=403)


def refusal_in_line(index: int, found: Refusal | None) -> Refusal | None:
    """The refusal of one line, its field named as in the list of lines."""
    return replace(found, field=f"lines[{index}].{found.field}") if found else None
