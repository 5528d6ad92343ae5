"""Who may create, see and revoke a team's tokens. Pure: (actor, standing) → Refusal or None."""

from __future__ import annotations

from accounts.core.actor import Actor
from accounts.core.policy import scope_refusal
from accounts.models import Role, Scope
from portal.core.errors import Refusal
from tenants.members.policy import MANAGING_ROLES, Standing


def may_see_team_tokens(by: Actor, standing: Standing) -> Refusal | None:
    if standing.role in MANAGING_ROLES or by.has_role(Role.ADMIN):
        return None
    return Refusal(
        "not_allowed", "Only owners and managers of the team can see its tokens. Ask one of them.", status=403
    )


def may_create_team_token(by: Actor, standing: Standing) -> Refusal | None:
    """It acts as its creator within the team, so a person outside the team cannot create one."""
    if standing.role not in MANAGING_ROLES:
        return Refusal("not_allowed", "Only owners and managers of the team can create its tokens.", status=403)
    return scope_refusal(by, Scope.ADMIN)


def may_revoke_team_token(by: Actor, standing: Standing) -> Refusal | None:
    return may_see_team_tokens(by, standing) or scope_refusal(by, Scope.ADMIN)
