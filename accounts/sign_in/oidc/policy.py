"""Who may connect an account to a person at the issuer. Pure."""

from __future__ import annotations

from collections.abc import Collection

from accounts.core.actor import Actor
from accounts.models import User
from accounts.people.policy import account_access_refusal
from portal.core.errors import Refusal

OWN_CONNECT = "You cannot connect your own account. Ask another administrator."
OWN_DISCONNECT = "You cannot disconnect your own account. Ask another administrator."


def may_connect_identity(by: Actor, target: User, *, is_held: bool, lent: Collection[str]) -> Refusal | None:
    """`is_held`: this account or the issuer's user is already connected."""
    if refusal := account_access_refusal(by, target, own=OWN_CONNECT, lent=lent):
        return refusal
    if is_held:
        text = f"{target.name}, or this person at the issuer, is already connected. Nothing was changed."
        return Refusal("already_so", text, status=409)
    return None


def may_disconnect_identity(by: Actor, target: User, *, is_held: bool, lent: Collection[str]) -> Refusal | None:
    if refusal := account_access_refusal(by, target, own=OWN_DISCONNECT, lent=lent):
        return refusal
    if is_held:
        return None
    return Refusal("already_so", f"{target.name} is not connected to this issuer. Nothing was changed.", status=409)
