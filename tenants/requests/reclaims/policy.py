"""Whether staff may reduce a team's quota, from when, and to what. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from accounts.core.actor import Actor
from accounts.core.policy import scope_refusal
from accounts.models import Role, Scope
from portal.core.errors import Refusal
from portal.ui.text import date_with_year, time_with_zone
from tenants.members.policy import Standing
from tenants.requests.policy import UNITS_MAX
from tenants.requests.types import ReclaimLine

# A week: time to object, to request another class, and to finish a running training.
NOTICE = timedelta(days=7)


@dataclass(frozen=True)
class ReclaimableTotal:
    """A class with its total that is granted when the reduction starts. `team`: the team's name.

    `units` 0 and `ends` at that moment: no total is granted then.
    """

    pk: int
    slug: str
    name: str
    team: str
    units: int
    ends: datetime
    is_pending: bool
    unit: str = "unit"
    is_storage: bool = False


@dataclass(frozen=True)
class ReclaimDecision:
    """The decided values of a reduction, beside the requested ones. `held`: the total granted then."""

    units: int
    starts: datetime
    ends: datetime
    asked_units: int
    asked_from: datetime
    asked_until: datetime
    held: int


def may_reclaim(by: Actor, standing: Standing) -> Refusal | None:
    """Allows operators and approvers from outside the team. `may_reclaim_class` checks the class."""
    if refusal := scope_refusal(by, Scope.REQUEST):
        return refusal
    if not (by.operates or by.has_role(Role.APPROVER)):
        text = "Only operators and approvers of the class can reduce quota."
        return Refusal("not_allowed", text, status=403)
    if standing.role:
        text = "You cannot reduce the quota of your own team. Request a lower total instead."
        return Refusal("own_team", text, status=403)
    if standing.wanted == "closed":
        return Refusal("closed", "This team is being closed, which ends all its grants.", status=409)
    return None


def may_reclaim_class(by: Actor, slug: str, name: str, *, decides: Collection[str] | None) -> Refusal | None:
    """`decides`: slugs of the actor's classes, None for all of them."""
    if by.operates or decides is None or slug in decides:
        return None
    text = f"Only operators and approvers of {name} can reduce its quota."
    return Refusal("not_your_class", text, "gpu_class", status=403)


def reclaim_line_refusal(taken: ReclaimLine, held: ReclaimableTotal | None, *, now: datetime) -> Refusal | None:
    """Returns why this total cannot be lowered like this from then on. `held` None: no such class in the catalog."""
    if held is None:
        return Refusal("unknown_class", f"There is no class '{taken.gpu_class}'. See the catalog.", "gpu_class")
    if not 0 <= taken.units <= UNITS_MAX:
        return Refusal("bad_units", f"Enter 0 to {UNITS_MAX:,} units.", "units")
    if held.is_pending:
        text = f"A request of {held.team} for {held.name} is pending. Decide that request first."
        return Refusal("already_pending", text, "gpu_class", status=409)
    if taken.starts < now + NOTICE:
        first = time_with_zone(now + NOTICE)
        text = f"A team gets at least {NOTICE.days} days' notice. Choose {first} or later."
        return Refusal("notice_too_short", text, "starts_at")
    return _lower_refusal(taken.units, held.units, f"{held.team} has", held.name, taken.starts)


def reclaim_decision_refusal(answer: ReclaimDecision, class_name: str) -> Refusal | None:
    """Checked at the decision: the team must not lose more, or earlier, than it was notified of."""
    if answer.units < answer.asked_units:
        text = (
            f"The team was notified of a total of {answer.asked_units}. To reduce further, propose another reduction."
        )
        return Refusal("more_than_told", text, "units")
    if answer.starts < answer.asked_from:
        text = f"The team was notified of {time_with_zone(answer.asked_from)}. Choose this time or later."
        return Refusal("notice_too_short", text, "starts_at")
    if answer.ends != answer.asked_until:
        text = f"A reduction must end with the grant that it reduces, on {time_with_zone(answer.asked_until)}."
        return Refusal("bad_period", text, "ends_at")
    return _lower_refusal(answer.units, answer.held, "The team has", class_name, answer.starts)


def _lower_refusal(units: int, held: int, who: str, class_name: str, starts: datetime) -> Refusal | None:
    if not held:
        when = date_with_year(starts)
        text = f"{who} no total of {class_name} on {when} to reduce. Temporary increases expire automatically."
        return Refusal("nothing_held", text, "gpu_class")
    if units > held:
        text = f"{who} {held} of {class_name} on {date_with_year(starts)}, and {units} is more. Enter a lower total."
        return Refusal("more_than_held", text, "units")
    if units == held:
        text = f"{who} {held} of {class_name} already on {date_with_year(starts)}. Enter a lower total."
        return Refusal("not_lower", text, "units")
    return None
