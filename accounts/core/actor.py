"""Actor: who asks for an action, and through which door. Passed as `by=` to every action."""

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
    # When the token ends that the request came with; None for pages, rules and the system.
    token_expires_at: datetime | None = None
    # Slug of the team whose token the request came with: `user` within that team, and nobody besides.
    confined_to: str = ""

    @property
    def user_id(self) -> int | None:
        return self.user.pk if self.user else None

    @property
    def person(self) -> User:
        """The user, where there has to be one. Raises Refused: not_signed_in (401)."""
        if self.user is None:
            raise Refused(NOT_SIGNED_IN)
        return self.user

    @property
    def name(self) -> str:
        return self.user.name if self.user else self.via

    @property
    def roles(self) -> list[str]:
        """Of staff, as far as they count: not of who is suspended, and none goes into a team's token."""
        return [] if self.user is None or not self.user.is_active or self.confined_to else self.user.roles

    def has_role(self, role: Role) -> bool:
        return role in self.roles

    def has_scope(self, scope: Scope) -> bool:
        return scope in self.scopes

    @property
    def sees_all(self) -> bool:
        """Staff who look across tenants: approvers, operators, auditors, admins."""
        return bool(self.roles)

    @property
    def operates(self) -> bool:
        """The portal itself, operators and admins. What a token may do is another question."""
        return self.user is None or self.has_role(Role.OPERATOR) or self.has_role(Role.ADMIN)


def actor_of_token(token: ApiToken, *, request_id: str = "") -> Actor:
    """The bearer of this token, for web and doors alike."""
    return Actor(
        user=token.user,
        via=f"token {token.prefix}",
        scopes=frozenset(token.scopes),
        request_id=request_id,
        token_expires_at=token.expires_at,
        confined_to=token.tenant,
    )


def system_actor(why: str) -> Actor:
    """The portal itself, for example `system("demo")`."""
    return Actor(user=None, via=f"system {why}")
