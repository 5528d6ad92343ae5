"""Who may add and remove a second factor. Pure."""

from __future__ import annotations

from accounts.core.actor import Actor
from accounts.models import User
from accounts.people.policy import account_access_refusal
from portal.core.errors import Refusal


def may_add_second_factor(*, held: bool, has_key: bool) -> Refusal | None:
    if not has_key:
        text = "This portal has no key to keep second factors with; ask its operators to set SECOND_FACTOR_KEY."
        return Refusal("no_second_factor_key", text, status=409)
    if held:
        return Refusal("second_factor_there", "You have a second factor; remove it before you add another.", status=409)
    return None


def may_change_second_factor(*, held: bool) -> Refusal | None:
    if held:
        return None
    return Refusal("no_second_factor", "There is no second factor on this account; nothing was changed.", status=409)


def may_drop_second_factor(by: Actor, target: User) -> Refusal | None:
    """A lost phone. Whoever has theirs removes it on the page of the account, with a code."""
    return account_access_refusal(by, target, own="You remove your own second factor on the page of your account.")
