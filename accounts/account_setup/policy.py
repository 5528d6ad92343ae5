"""Who may create an account, and a code for its password. Pure."""

from __future__ import annotations

from collections.abc import Collection

from accounts.core.actor import Actor
from accounts.models import User
from accounts.people.policy import account_access_refusal, address_refusal, may_administer
from portal.core.errors import Refusal


def may_make_password_code(by: Actor, target: User, *, lent: Collection[str]) -> Refusal | None:
    own = "Change your own password on the Account page."
    if refusal := account_access_refusal(by, target, own=own, lent=lent):
        return refusal
    if target.is_active:
        return None
    text = f"{target.name} is suspended and cannot use a code. Restore the account first."
    return Refusal("suspended", text, status=409)


def may_add_person(by: Actor, *, email: str, is_taken: bool) -> Refusal | None:
    if refusal := may_administer(by) or address_refusal(email):
        return refusal
    if is_taken:
        return Refusal("email_taken", f"'{email}' already has an account. Nothing was changed.", "email", status=409)
    return None
