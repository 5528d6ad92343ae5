"""Who may create, revoke and list tokens. Pure: (actor, facts) → Refusal or None."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from accounts.core.actor import Actor
from accounts.core.policy import SECOND_FACTOR_NEEDED, clean_name, person_refusal, scope_refusal
from accounts.models import ApiToken, Role, Scope
from portal.core.errors import NOT_FOUND, NOT_SIGNED_IN, Refusal
from portal.ui.text import time_with_zone

SECOND_FACTOR_FOR_SCOPE = replace(SECOND_FACTOR_NEEDED, field="scopes")

TOKEN_DAYS_MAX = 365

TOKENS_MAX = 50

TOKEN_NAME_MAX = 60


def may_create_token(
    by: Actor,
    *,
    scopes: Collection[str],
    expires_in_days: int,
    tokens_held: int,
    own_end: datetime | None,
    end: datetime,
    has_second_factor: bool,
    tenant: str = "",
) -> Refusal | None:
    """`own_end`: when the token of the request expires, if there is one. A token cannot have a later end, more
    scopes or another team than the token that creates it. `tenant`: the team's slug, "" for a personal token.
    """
    if by.user is None:
        return NOT_SIGNED_IN
    if by.confined_to != tenant and (refusal := person_refusal(by)):
        return refusal
    if not scopes:
        return Refusal("no_scope", "Choose at least one scope.", "scopes")
    known = scopes_for(tenant)
    if unknown := sorted(set(scopes) - set(known)):
        of_team = " for a team's token" if tenant else ""
        text = f"There is no scope {unknown[0]!r}{of_team}. Scopes are {', '.join(known)}."
        return Refusal("unknown_scope", text, "scopes")
    if lacking := sorted(set(scopes) - by.scopes):
        return Refusal(
            "lacks_scope",
            f"Your token lacks the scope {lacking[0]!r}, so it cannot grant this scope.",
            "scopes",
            status=403,
        )
    if Scope.ADMIN in scopes and not has_second_factor:
        return SECOND_FACTOR_FOR_SCOPE
    if not 1 <= expires_in_days <= TOKEN_DAYS_MAX:
        return Refusal(
            "bad_expiry",
            f"Enter 1 to {TOKEN_DAYS_MAX} days, not {expires_in_days}.",
            "expires_in_days",
        )
    if own_end is not None and end > own_end:
        return Refusal(
            "outlives_token",
            f"Your token expires on {time_with_zone(own_end)}. A token created with it cannot expire later.",
            "expires_in_days",
            status=403,
        )
    if tokens_held >= TOKENS_MAX:
        who = "The team has" if tenant else "You have"
        return Refusal(
            "too_many_tokens", f"{who} {tokens_held} tokens; the limit is {TOKENS_MAX}. Revoke a token first."
        )
    return None


def scopes_for(tenant: str) -> list[str]:
    """A team's token cannot have DECIDE: staff and their delegates decide, and it has none of their rights."""
    return [scope for scope in Scope.values if not tenant or scope != Scope.DECIDE]


def clean_token_name(name: str) -> str:
    """The name with single spaces. Raises Refused (bad_name): 1 to 60 printable characters."""
    return clean_name(
        name, TOKEN_NAME_MAX, f"Enter a token name of 1 to {TOKEN_NAME_MAX} characters, for example 'nightly CI'."
    )


SESSION_HAS_NO_TOKEN = Refusal(
    "not_allowed",
    "This call was made by a session, not by a token. Send the token to revoke, or revoke it on the API tokens page.",
    status=403,
)


def may_revoke_token(by: Actor, token: ApiToken) -> Refusal | None:
    if by.user is None or by.user_id == token.user_id or by.has_role(Role.ADMIN):
        return None
    return Refusal("not_allowed", "Only the owner or an administrator can revoke a token.", status=403)


def may_see_all_tokens(by: Actor) -> Refusal | None:
    """Only administrators; others get not_found."""
    return scope_refusal(by, Scope.ADMIN) if by.has_role(Role.ADMIN) else NOT_FOUND
