"""The verbs about accounts: roles, suspension. Each is one transaction that writes exactly one Event."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from django.db import transaction

from accounts.core.actor import Actor
from accounts.events.actions import record
from accounts.models import Role, User
from accounts.people import policy as people_policy
from accounts.people import queries as people_queries
from portal.core.errors import NOT_FOUND, Refused, refuse_if


@transaction.atomic
def set_roles(user_id: int, roles: Collection[str], *, by: Actor) -> User:
    """The same roles again change nothing.

    Raises Refused: not_found (404), not_allowed, own_roles, lacks_role (403), last_admin (409), unknown_role (422).
    """
    by, target, other_admins = lock_actor_and_target(by, user_id)
    refuse_if(people_policy.may_set_roles(by, target, roles, other_admins=other_admins))
    before, target.roles = target.roles, sorted(set(roles))
    if sorted(before) != target.roles:
        # A role that is removed here and later given by hand is no longer a group role: groups do not remove it.
        target.group_roles = [role for role in target.group_roles if role in target.roles]
        target.save(update_fields=["roles", "group_roles"])
        record(by, "account.roles_set", target, before={"roles": before}, after={"roles": target.roles})
    return target


@transaction.atomic
def suspend_user(user_id: int, *, because: str, by: Actor) -> User:
    """The user's sessions and tokens are refused from the next request on; nothing is deleted.

    Raises Refused: not_found (404), not_allowed, own_account (403), last_admin, already_so (409), reason_missing (422).
    """
    by, target, other_admins = lock_actor_and_target(by, user_id)
    refuse_if(people_policy.may_suspend(by, target, other_admins=other_admins))
    because = people_policy.clean_reason(because, is_needed=True)
    _set_active(target, to=False)
    record(by, "account.suspended", target, before={"is_active": True}, after={"is_active": False, "because": because})
    return target


@transaction.atomic
def restore_user(user_id: int, *, because: str = "", by: Actor) -> User:
    """Raises Refused: not_found (404), not_allowed, own_account (403), already_so (409)."""
    by, target, _ = lock_actor_and_target(by, user_id)
    refuse_if(people_policy.may_restore(by, target))
    because = people_policy.clean_reason(because, is_needed=False)
    _set_active(target, to=True)
    after = {"is_active": True, **({"because": because} if because else {})}
    record(by, "account.restored", target, before={"is_active": False}, after=after)
    return target


def _set_active(target: User, *, to: bool) -> None:
    refuse_if(people_policy.may_change_activity(target, to=to))
    target.is_active = to
    target.save(update_fields=["is_active"])


def lock_self(by: Actor) -> User:
    """The acting user's row, locked until the end of the transaction."""
    return User.objects.select_for_update().get(pk=by.person.pk)


def lock_actor_and_target(by: Actor, user_id: int) -> tuple[Actor, User, int]:
    """Returns the current actor and target and the number of other active administrators. All rows are locked in id
    order: the actor may just have lost the role, and of the last two administrators only one may lose it.
    """
    wanted = [user_id] if by.user_id is None else [user_id, by.user_id]
    found = User.objects.filter(pk__in=wanted) | people_queries.active_administrators()
    rows = {user.pk: user for user in found.select_for_update(no_key=True).order_by("pk")}
    if user_id not in rows:
        raise Refused(NOT_FOUND)
    others = sum(user.is_active and user.has_role(Role.ADMIN) for user in rows.values() if user.pk != user_id)
    return (by if by.user_id is None else replace(by, user=rows[by.user_id])), rows[user_id], others
