"""Who may administer accounts: roles, suspension, access. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection

from accounts.core.actor import Actor
from accounts.core.policy import clean_name, scope_refusal
from accounts.models import Role, Scope, User
from portal.core.errors import Refusal, refuse_if
from portal.core.plain_text import hidden_refusal

# The staff roles whose rights other people lend to an account, now or from a later date. tenants/approvers/delegation/
# has it: this app knows no delegates.
RolesLentTo = Callable[[User], Collection[str]]

REASON_MAX = 300
ADDRESS_MAX = 254
NAME_MAX = 80
NOT_ADMIN = Refusal("not_allowed", "Only administrators can do this.", status=403)
LAST_ADMIN = Refusal(
    "last_admin",
    "The portal needs at least one administrator. Give another person this role first. Nothing was changed.",
    status=409,
)


def may_administer(by: Actor) -> Refusal | None:
    """To see all accounts and to change other users' rights. The portal itself (`by.user` is None) may do it."""
    if refusal := scope_refusal(by, Scope.ADMIN):
        return refusal
    return None if by.user is None or by.has_role(Role.ADMIN) else NOT_ADMIN


def may_set_roles(by: Actor, target: User, roles: Collection[str], *, other_admins: int) -> Refusal | None:
    """The portal itself may give all roles, which creates the first administrator. `other_admins`: number of active
    administrators other than `target`.
    """
    if refusal := may_administer(by):
        return refusal
    if unknown := sorted(set(roles) - set(Role.values)):
        return Refusal("unknown_role", f"There is no role {unknown[0]!r}. Roles are {', '.join(Role.values)}.", "roles")
    if by.user is not None and by.user_id == target.pk:
        return Refusal("own_roles", "You cannot change your own roles. Ask another administrator.", status=403)
    if by.user is not None and (lacking := sorted(set(roles) - set(target.roles) - set(by.roles))):
        return Refusal(
            "lacks_role", f"You do not have the role '{lacking[0]}', so you cannot grant it.", "roles", status=403
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
        return Refusal("own_account", "You cannot suspend your own account. Ask another administrator.", status=403)
    return None


def _last_admin_refusal(target: User, other_admins: int) -> Refusal | None:
    return LAST_ADMIN if target.is_active and target.has_role(Role.ADMIN) and not other_admins else None


def reason_refusal(because: str, *, is_needed: bool) -> Refusal | None:
    if is_needed and not because:
        return Refusal("reason_missing", "Enter a reason. It is recorded in the history.", "because")
    if len(because) > REASON_MAX:
        text = f"Enter a reason of at most {REASON_MAX} characters; this one has {len(because)}."
        return Refusal("reason_too_long", text, "because")
    return hidden_refusal("because", because)


def clean_reason(because: str, *, is_needed: bool) -> str:
    """The reason with single spaces. Raises Refused: reason_missing, reason_too_long (422)."""
    because = " ".join(because.split())
    refuse_if(reason_refusal(because, is_needed=is_needed))
    return because


def account_access_refusal(by: Actor, target: User, *, own: str, lent: Collection[str]) -> Refusal | None:
    """For actions that could let an attacker sign in as the other person: no one gains rights that they lack. `lent`:
    the roles whose rights the person has or will have as a delegate (RolesLentTo).
    """
    if refusal := may_administer(by):
        return refusal
    if by.user is None:
        return None
    if by.user_id == target.pk:
        return Refusal("own_account", own, status=403)
    if target.is_superuser:
        text = "This is the break-glass account. Operators manage it with 'manage.py' on the portal's server."
        return Refusal("break_glass", text, status=403)
    if lacking := sorted(set(target.roles) - set(by.roles)):
        text = f"{target.name} has the role '{lacking[0]}' and you do not. Ask an administrator who has it."
        return Refusal("lacks_role", text, status=403)
    if lacking := sorted(set(lent) - set(by.roles)):
        text = (
            f"{target.name} is a delegate, now or later, of a person with the role '{lacking[0]}', and you do not have "
            "this role. Ask an administrator who has it."
        )
        return Refusal("lacks_role", text, status=403)
    return None


def address_refusal(email: str) -> Refusal | None:
    """Checks an email without an account, because the portal sends messages to it."""
    name, at, host = email.partition("@")
    if at and name and "." in host and len(email) <= ADDRESS_MAX and not any(char.isspace() for char in email):
        return None
    text = f"'{email[:80]}' is not an email address. Enter an address of at most {ADDRESS_MAX} characters."
    return Refusal("bad_address", text, "email")


def clean_person_name(name: str) -> str:
    """The name with single spaces. Raises Refused (bad_name)."""
    return clean_name(name, NAME_MAX, f"Enter a name of 1 to {NAME_MAX} characters.")


def may_change_activity(target: User, *, to: bool) -> Refusal | None:
    if target.is_active is to:
        state = "active" if to else "suspended"
        return Refusal("already_so", f"{target.name} is already {state}. Nothing was changed.", status=409)
    return None
