"""Who may do what to accounts and tokens. Pure: (actor, row, facts) → Refusal or None."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from accounts.actor import Actor
from accounts.models import ApiToken, Role, Scope, User
from portal.errors import NOT_FOUND, NOT_SIGNED_IN, Refusal, refuse

TOKEN_DAYS_MAX = 365
TOKENS_MAX = 50
TOKEN_NAME_MAX = 60
BECAUSE_MAX = 300
ADDRESS_MAX = 254
NAME_MAX = 80
NOT_ADMIN = Refusal("not_allowed", "Only administrators of the portal may do this.", status=403)
LAST_ADMIN = Refusal(
    "last_admin", "The portal needs an administrator. Make somebody else one first; nothing was changed.", status=409
)


def person_refusal(by: Actor) -> Refusal | None:
    """Of what concerns a person in no team, or in any: a team's token has no part in it."""
    if not by.confined_to:
        return None
    text = f"This token acts in the team '{by.confined_to}' only. Use one of your own, from the page of your tokens."
    return Refusal("team_token", text, status=403)


def scope_refusal(by: Actor, scope: Scope) -> Refusal | None:
    if by.has_scope(scope):
        return None
    text = f"This token lacks the scope '{scope}'. Use one that has it, or make one on the page of your tokens."
    return Refusal("missing_scope", text, status=403)


def may_create_token(
    by: Actor,
    *,
    scopes: Collection[str],
    expires_in_days: int,
    tokens_held: int,
    own_end: datetime | None,
    end: datetime,
    tenant: str = "",
) -> Refusal | None:
    """`own_end`: when the token ends that `by` came with, if any: a token cannot outlive or outgrow its maker, nor
    leave its team. `tenant`: the team's slug, "" for a token of the person's own.
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
            "lacks_scope", f"Your own token lacks the scope {lacking[0]!r} and cannot give it.", "scopes", status=403
        )
    if not 1 <= expires_in_days <= TOKEN_DAYS_MAX:
        return Refusal(
            "bad_expiry",
            f"A token lives 1 to {TOKEN_DAYS_MAX} days; {expires_in_days} is not possible.",
            "expires_in_days",
        )
    if own_end is not None and end > own_end:
        return Refusal(
            "outlives_token",
            f"Your own token ends on {own_end:%d %b %Y, %H:%M %Z}; a token made with it cannot live longer.",
            "expires_in_days",
            status=403,
        )
    if tokens_held >= TOKENS_MAX:
        who = "The team has" if tenant else "You have"
        return Refusal(
            "too_many_tokens", f"{who} {tokens_held} tokens, at most {TOKENS_MAX} possible. Revoke one first."
        )
    return None


def scopes_for(tenant: str) -> list[str]:
    """Deciding is for staff and their deputies, and they leave that at home."""
    return [scope for scope in Scope.values if not tenant or scope != Scope.DECIDE]


def clean_token_name(name: str) -> str:
    """The name with single spaces. Raises Refused (bad_name): 1 to 60 printable characters."""
    return _clean_name(
        name, TOKEN_NAME_MAX, f"A token's name has 1 to {TOKEN_NAME_MAX} characters, for example 'nightly CI'."
    )


def may_revoke_token(by: Actor, token: ApiToken) -> Refusal | None:
    if by.user is None or by.user_id == token.user_id or by.has_role(Role.ADMIN):
        return None
    return Refusal("not_allowed", "Only its owner or an administrator may revoke a token.", status=403)


def may_see_all_tokens(by: Actor) -> Refusal | None:
    """For others there is no such list."""
    return scope_refusal(by, Scope.ADMIN) if by.has_role(Role.ADMIN) else NOT_FOUND


def may_administer(by: Actor) -> Refusal | None:
    """See all accounts, and change what others may do. The portal itself (`by.user` is None) may."""
    if refusal := scope_refusal(by, Scope.ADMIN):
        return refusal
    return None if by.user is None or by.has_role(Role.ADMIN) else NOT_ADMIN


def may_set_roles(by: Actor, target: User, roles: Collection[str], *, other_admins: int) -> Refusal | None:
    """The portal itself may grant all: somebody has to be the first administrator. `other_admins`: those beside
    `target` whose accounts are active.
    """
    if refusal := may_administer(by):
        return refusal
    if unknown := sorted(set(roles) - set(Role.values)):
        return Refusal("unknown_role", f"There is no role {unknown[0]!r}. Roles are {', '.join(Role.values)}.", "roles")
    if by.user is not None and by.user_id == target.pk:
        return Refusal("own_roles", "You cannot change your own roles; ask another administrator.", status=403)
    if by.user is not None and (lacking := sorted(set(roles) - set(target.roles) - set(by.roles))):
        return Refusal(
            "lacks_role", f"You are not {lacking[0]} yourself and cannot make others so.", "roles", status=403
        )
    return None if Role.ADMIN in roles else _last_admin_refusal(target, other_admins)


def may_suspend(by: Actor, target: User, *, other_admins: int) -> Refusal | None:
    if refusal := may_restore(by, target):
        return refusal
    return _last_admin_refusal(target, other_admins)


def may_restore(by: Actor, target: User) -> Refusal | None:
    if refusal := may_administer(by):
        return refusal
    if by.user is not None and by.user_id == target.pk:
        return Refusal("own_account", "You cannot suspend yourself; ask another administrator.", status=403)
    return None


def _last_admin_refusal(target: User, other_admins: int) -> Refusal | None:
    return LAST_ADMIN if target.is_active and target.has_role(Role.ADMIN) and not other_admins else None


def because_refusal(because: str, *, is_needed: bool) -> Refusal | None:
    if is_needed and not because:
        return Refusal("reason_missing", "Say why; it stays in the history.", "because")
    if len(because) > BECAUSE_MAX:
        text = f"A reason has at most {BECAUSE_MAX} characters, this one has {len(because)}; shorten it."
        return Refusal("reason_too_long", text, "because")
    return None


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
    return _opens_refusal(by, target, own="You remove your own second factor on the page of your account.")


def may_make_password_code(by: Actor, target: User) -> Refusal | None:
    if refusal := _opens_refusal(by, target, own="You change your own password on the page of your account."):
        return refusal
    if target.is_active:
        return None
    text = f"{target.name} is suspended and could not use a code; restore the account first."
    return Refusal("suspended", text, status=409)


def _opens_refusal(by: Actor, target: User, *, own: str) -> Refusal | None:
    """Of what would let somebody who means ill in as the other: nobody comes to what they lack by it."""
    if refusal := may_administer(by):
        return refusal
    if by.user is None:
        return None
    if by.user_id == target.pk:
        return Refusal("own_account", own, status=403)
    if target.is_superuser:
        text = "This is the account for emergencies; operators keep it with 'manage.py', where the portal runs."
        return Refusal("break_glass", text, status=403)
    if lacking := sorted(set(target.roles) - set(by.roles)):
        text = f"{target.name} is {lacking[0]} and you are not; ask an administrator who is."
        return Refusal("lacks_role", text, status=403)
    return None


def may_add_person(by: Actor, *, email: str, is_taken: bool) -> Refusal | None:
    if refusal := may_administer(by) or address_refusal(email):
        return refusal
    if is_taken:
        return Refusal("email_taken", f"'{email}' has an account already; nothing was changed.", "email", status=409)
    return None


def address_refusal(email: str) -> Refusal | None:
    """Of a person whom nobody here knows: mail goes there."""
    name, at, host = email.partition("@")
    if at and name and "." in host and len(email) <= ADDRESS_MAX and not any(char.isspace() for char in email):
        return None
    text = f"'{email[:80]}' is no mail address. Send one of up to {ADDRESS_MAX} characters."
    return Refusal("bad_address", text, "email")


def clean_person_name(name: str) -> str:
    """The name with single spaces. Raises Refused (bad_name)."""
    return _clean_name(name, NAME_MAX, f"A person's name has 1 to {NAME_MAX} characters.")


def _clean_name(name: str, most: int, otherwise: str) -> str:
    cleaned = " ".join(name.split())
    if not 1 <= len(cleaned) <= most or not cleaned.isprintable():
        raise refuse("bad_name", otherwise, field="name")
    return cleaned


def may_connect(by: Actor, target: User, *, is_held: bool) -> Refusal | None:
    """With somebody at an issuer. `is_held`: the person here or the one there is connected already."""
    if refusal := _opens_refusal(by, target, own="Another administrator connects you."):
        return refusal
    if is_held:
        text = f"{target.name}, or this person at the issuer, is connected already; nothing was changed."
        return Refusal("already_so", text, status=409)
    return None


def may_disconnect(by: Actor, target: User, *, is_held: bool) -> Refusal | None:
    if refusal := _opens_refusal(by, target, own="Another administrator disconnects you."):
        return refusal
    if is_held:
        return None
    return Refusal("already_so", f"{target.name} is not connected with this issuer; nothing was changed.", status=409)


def may_change_activity(target: User, *, to: bool) -> Refusal | None:
    if target.is_active is to:
        state = "active" if to else "suspended"
        return Refusal("already_so", f"{target.name} is {state} already; nothing was changed.", status=409)
    return None
