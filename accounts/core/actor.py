"""Actor: the user (or the system) that calls an action, and the channel used. Passed as `by=` to every action."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from accounts.models import ApiToken, Role, Scope, User
from portal.core.errors import NOT_SIGNED_IN, Refused

ALL_SCOPES = frozenset(str(scope) for scope in Scope)


@dataclass(frozen=True)
class Actor:
    """`user` is None for the system and for rules. `via` is "page", "token <prefix>", "command",
    "rule <name>" or "system".
    """

    user: User | None
    via: str
    scopes: frozenset[str] = field(default=ALL_SCOPES)
    request_id: str = ""
    # When the token of the request expires; None for pages, rules and the system.
    token_expires_at: datetime | None = None
    # For a request with a team's token, the team's slug: the actor is `user`, but only within that team.
    confined_to: str = ""
    # For a request with a token of scope admin: its owner has no second factor, so `scopes` does not contain it.
    is_admin_withheld: bool = False

    @property
    def user_id(self) -> int | None:
        return self.user.pk if self.user else None

    @property
    def person(self) -> User:
        """The user, where one is required. Raises Refused: not_signed_in (401)."""
        if self.user is None:
            raise Refused(NOT_SIGNED_IN)
        return self.user

    @property
    def name(self) -> str:
        return self.user.name if self.user else self.via

    @property
    def roles(self) -> list[str]:
        """The staff roles that apply: none for a suspended user or for a team's token."""
        return [] if self.user is None or not self.user.is_active or self.confined_to else self.user.roles

    def has_role(self, role: Role) -> bool:
        return role in self.roles

    def has_scope(self, scope: Scope) -> bool:
        return scope in self.scopes

    @property
    def sees_all(self) -> bool:
        """Staff see all teams: approvers, operators, auditors, admins."""
        return bool(self.roles)

    @property
    def oversees(self) -> bool:
        """Operators, administrators and auditors: they see what all teams use."""
        return not {Role.OPERATOR, Role.ADMIN, Role.AUDITOR}.isdisjoint(self.roles)

    @property
    def operates(self) -> bool:
        """The portal itself, operators and admins. Scopes of a token are checked separately."""
        return self.user is None or self.has_role(Role.OPERATOR) or self.has_role(Role.ADMIN)


def actor_of_token(token: ApiToken, *, request_id: str = "") -> Actor:
    """The actor of a request with this token, for web and doors."""
    scopes = frozenset(token.scopes)
    is_withheld = Scope.ADMIN in scopes and not token.owner_has_second_factor
    return Actor(
        user=token.user,
        via=f"token {token.prefix}",
        scopes=scopes - {Scope.ADMIN} if is_withheld else scopes,
        request_id=request_id,
        token_expires_at=token.expires_at,
        confined_to=token.tenant,
        is_admin_withheld=is_withheld,
    )


def system_actor(why: str) -> Actor:
    """The portal itself, for example `system_actor("demo")`."""
    return Actor(user=None, via=f"system {why}")
