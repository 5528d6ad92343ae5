"""Who may add and remove members, change roles, and join a team. Pure: (actor, standing, facts) → Refusal or None."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from accounts.core.actor import Actor
from accounts.core.policy import scope_refusal
from accounts.models import Role, Scope
from portal.core.errors import Refusal
from portal.core.plain_text import hidden_refusal
from portal.ui.text import date_with_year

OWNER, MANAGER, MEMBER, VIEWER = "owner", "manager", "member", "viewer"

MEMBER_ROLES = (OWNER, MANAGER, MEMBER, VIEWER)

MANAGING_ROLES = (OWNER, MANAGER)

MESSAGE_MAX = 300

# Invitations of a team in a day: each is a mail to an address whose owner did not ask for it.
INVITATIONS_TO_ADDRESS_MAX = 3
INVITATIONS_MAX = 50

LAST_OWNER = Refusal("last_owner", "A team needs at least one owner. Make another member an owner first.", status=409)


@dataclass(frozen=True)
class Standing:
    """The actor's role in the team: "" for none. `wanted` is the namespace's: active, suspended or closed."""

    role: str
    wanted: str = "active"


def may_manage_members(by: Actor, standing: Standing) -> Refusal | None:
    return may_see_pending_members(by, standing) or scope_refusal(by, Scope.ADMIN)


def may_see_pending_members(by: Actor, standing: Standing) -> Refusal | None:
    """Whether the actor may see invitations and join requests; a token needs only the read scope."""
    if by.user is None or standing.role in MANAGING_ROLES or by.has_role(Role.ADMIN):
        return None
    return Refusal("not_allowed", "Only owners and managers of the team can manage its members.", status=403)


def may_give_role(by: Actor, standing: Standing, role: str) -> Refusal | None:
    if role not in MEMBER_ROLES:
        return Refusal("unknown_role", f"There is no role {role!r}. Choose one of {', '.join(MEMBER_ROLES)}.", "role")
    if role == OWNER and standing.role == MANAGER and not by.has_role(Role.ADMIN):
        return Refusal("not_allowed", "Only an owner can make another person an owner.", "role", status=403)
    return None


def may_set_sharing(by: Actor, standing: Standing) -> Refusal | None:
    """May the actor choose who can open the team's new notebooks, where the person who launches does not choose?"""
    if standing.role != OWNER:
        return Refusal("not_allowed", "Only owners of the team can choose this.", status=403)
    return scope_refusal(by, Scope.ADMIN)


def may_invite_again(email: str, *, to_address: int, by_team: int) -> Refusal | None:
    """`to_address`, `by_team`: how many the team has sent within a day, revoked ones included."""
    if to_address >= INVITATIONS_TO_ADDRESS_MAX:
        text = (
            f"This team has sent {to_address} invitations to '{email[:80]}' within a day; the limit is "
            f"{INVITATIONS_TO_ADDRESS_MAX}. Try again tomorrow, or ask an administrator to create the account."
        )
        return Refusal("too_many_invitations", text, "email", status=409)
    if by_team >= INVITATIONS_MAX:
        text = (
            f"This team has sent {by_team} invitations within a day; the limit is {INVITATIONS_MAX}. Try again "
            "tomorrow, or ask an administrator to create the accounts: people with an account are added at once."
        )
        return Refusal("too_many_invitations", text, "email", status=409)
    return None


def may_remove_member(by: Actor, standing: Standing, *, role: str, is_self: bool, owners: int) -> Refusal | None:
    """`role`: of the person to remove; `owners`: number of owners. Everybody may leave except the last owner."""
    if not is_self and (refusal := may_manage_members(by, standing)):
        return refusal
    if not is_self and role == OWNER and standing.role == MANAGER and not by.has_role(Role.ADMIN):
        return Refusal("not_allowed", "Only an owner can remove an owner.", status=403)
    return LAST_OWNER if role == OWNER and owners <= 1 else None


def may_take_role(by: Actor, standing: Standing, *, role: str, owners: int) -> Refusal | None:
    """Whether `role` may be changed for a member who has it; `owners`: number of owners."""
    if role != OWNER:
        return None
    if standing.role == MANAGER and not by.has_role(Role.ADMIN):
        return Refusal("not_allowed", "Only an owner can change the role of an owner.", status=403)
    return LAST_OWNER if owners <= 1 else None


def may_be_added(email: str, *, is_active: bool) -> Refusal | None:
    if is_active:
        return None
    return Refusal("suspended", f"The account of '{email}' is suspended. Ask an administrator.", "email", status=409)


def may_ask_to_join(by: Actor, standing: Standing, *, message: str) -> Refusal | None:
    if refusal := scope_refusal(by, Scope.REQUEST):
        return refusal
    if standing.role:
        return Refusal("already_member", f"You are already in this team, with the role {standing.role}.", status=409)
    if standing.wanted == "closed":
        return Refusal("closed", "This team is being closed. Join another team.", status=409)
    if len(message) > MESSAGE_MAX:
        text = f"Enter a message of at most {MESSAGE_MAX} characters; this one has {len(message)}."
        return Refusal("bad_message", text, "message")
    return hidden_refusal("message", message)


def may_accept_invitation(*, expires_at: datetime, now: datetime) -> Refusal | None:
    if expires_at > now:
        return None
    text = f"This invitation expired on {date_with_year(expires_at)}. Ask the team for a new one, or request to join."
    return Refusal("lapsed", text, status=409)


def may_answer_join(by: Actor, standing: Standing, *, accept: bool, role: str, reason: str) -> Refusal | None:
    """A reason is required to decline and optional to accept."""
    if refusal := hidden_refusal("reason", reason):
        return refusal
    if len(reason) <= MESSAGE_MAX and (accept or reason):
        # Declining gives no role, but an unknown role in the input is still refused.
        return may_give_role(by, standing, role) if accept or role not in MEMBER_ROLES else None
    return Refusal(
        "reason_missing", f"Enter a reason of at most {MESSAGE_MAX} characters. It is shown to the person.", "reason"
    )
