"""Who may add and remove a second factor. Pure."""

from __future__ import annotations

from collections.abc import Collection

from accounts.core.actor import Actor
from accounts.models import User
from accounts.people.policy import account_access_refusal
from portal.core.errors import Refusal


def may_add_second_factor(*, held: bool, has_key: bool) -> Refusal | None:
    if not has_key:
        text = "Second factors are not configured on this portal. Ask an operator to set SECOND_FACTOR_KEY."
        return Refusal("no_second_factor_key", text, status=409)
    if held:
        return Refusal(
            "second_factor_there", "You already have a second factor. Remove it before you add another.", status=409
        )
    return None


def may_change_second_factor(*, held: bool) -> Refusal | None:
    if held:
        return None
    return Refusal("no_second_factor", "This account has no second factor. Nothing was changed.", status=409)


def may_drop_second_factor(by: Actor, target: User, *, lent: Collection[str]) -> Refusal | None:
    """For a lost phone. Users who still have their phone remove the factor on the Account page, with a code."""
    return account_access_refusal(by, target, own="Remove your own second factor on the Account page.", lent=lent)
