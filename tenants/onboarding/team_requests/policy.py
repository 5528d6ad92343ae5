"""Who may request a team, and who may decide such a request. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from accounts.core.actor import Actor
from accounts.core.policy import scope_refusal
from accounts.models import Role, Scope
from portal.core.errors import Refusal
from portal.core.plain_text import hidden_refusal
from tenants.onboarding.teams import policy

NAME_MAX = 80
PURPOSE_MAX = 300


@dataclass(frozen=True)
class DecidableTeam:
    """A request for a team, for the person who may decide it. `classes`: names by slug of its bundle's lines;
    `decides`: slugs of the actor's classes, None for all of them.
    """

    asked_by: int
    is_active: bool
    state: str
    classes: Mapping[str, str]
    decides: Collection[str] | None
    is_deputy: bool = False


def may_ask_for_team(by: Actor) -> Refusal | None:
    return scope_refusal(by, Scope.REQUEST)


def team_refusal(*, name: str, slug: str, purpose: str) -> Refusal | None:
    if not 1 <= len(name) <= NAME_MAX:
        text = f"Enter a team name of 1 to {NAME_MAX} characters."
        return Refusal("bad_name", text, "name")
    if not 1 <= len(purpose) <= PURPOSE_MAX:
        text = f"Enter the purpose of the team in at most {PURPOSE_MAX} characters."
        return Refusal("bad_purpose", text, "purpose")
    return hidden_refusal("name", name) or hidden_refusal("purpose", purpose) or policy.slug_refusal(slug)


def may_decide_team(by: Actor, team: DecidableTeam) -> Refusal | None:
    """Allows an approver of every class in the bundle, or a delegate; never the requester. Approving needs more."""
    if refusal := scope_refusal(by, Scope.DECIDE):
        return refusal
    if not (by.has_role(Role.APPROVER) or team.is_deputy):
        return Refusal("not_allowed", "Only approvers can decide requests for a team.", status=403)
    if by.user_id == team.asked_by:
        return Refusal("own_request", "You cannot decide your own request. Another approver decides it.", status=403)
    others = [name for slug, name in team.classes.items() if team.decides is not None and slug not in team.decides]
    if others:
        text = f"You do not decide requests for {', '.join(others)} (in the bundle). Other approvers decide this."
        return Refusal("not_your_class", text, status=403)
    if team.state != "pending":
        text = f"This request is already {team.state}. Nothing was changed. Reload the page to see who decided it."
        return Refusal("already_decided", text, status=409)
    return None


def may_approve_team(team: DecidableTeam, units: Collection[str]) -> Refusal | None:
    """`units`: slugs of the classes for which the approver changed the units."""
    if not team.is_active:
        text = (
            "The requester's account is suspended, so the team would have no owner. Deny the request, or restore the "
            "account."
        )
        return Refusal("suspended", text, status=409)
    unknown = sorted(set(units) - set(team.classes))
    if unknown:
        return Refusal("unknown_class", f"The bundle has no class '{unknown[0][:40]}'.", "units")
    return None


def units_refusal(units: Collection[str], *, by_rule: bool) -> Refusal | None:
    """`by_rule`: the rule "bundle" is on, and approving a team grants its lines."""
    if by_rule or not units:
        return None
    text = "The rule 'bundle' is off, so the quota is decided later as a request. Do not change the units here."
    return Refusal("rule_off", text, "units", status=409)
