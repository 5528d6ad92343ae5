"""Checks of the actor that every verb may use: a user without a team's token, the token's scope. Pure."""

from __future__ import annotations

from accounts.core.actor import Actor
from accounts.models import Scope
from portal.core.errors import Refusal, refuse
from portal.core.plain_text import hidden_refusal

SECOND_FACTOR_NEEDED = Refusal(
    "second_factor_needed",
    "Administration of accounts and tokens of scope 'admin' require a second factor. Add one on the Account page, or "
    "enter its code in this session.",
    status=403,
)


def person_refusal(by: Actor) -> Refusal | None:
    """Refuses a team's token for actions that concern the user and not one team."""
    if not by.confined_to:
        return None
    text = f"This token works only in the team '{by.confined_to}'. Use a personal token from the API tokens page."
    return Refusal("team_token", text, status=403)


def scope_refusal(by: Actor, scope: Scope) -> Refusal | None:
    if by.has_scope(scope):
        return None
    if scope == Scope.ADMIN and by.is_admin_withheld:
        text = (
            "The scope 'admin' of this token does not apply, because its owner has no second factor. "
            "The owner can add one on the Account page; then the token works again."
        )
        return Refusal("second_factor_needed", text, status=403)
    text = f"This token lacks the scope '{scope}'. Use a token with this scope, or create one on the API tokens page."
    return Refusal("missing_scope", text, status=403)


def clean_name(name: str, most: int, otherwise: str) -> str:
    if hidden := hidden_refusal("name", name):
        raise refuse("bad_name", hidden.message, field="name")
    cleaned = " ".join(name.split())
    if not 1 <= len(cleaned) <= most or not cleaned.isprintable():
        raise refuse("bad_name", otherwise, field="name")
    return cleaned
