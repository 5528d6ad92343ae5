"""The role that an actor has in a team, and the people who manage a team."""

from __future__ import annotations

from accounts.core.actor import Actor
from accounts.models import User
from tenants.members import policy as member_policy
from tenants.models import Membership, Tenant


def standing_of(by: Actor, tenant: Tenant, *, wanted: str = "") -> member_policy.Standing:
    """Returns the actor's role in the team and the wanted state of its namespace, which is read if the caller does not
    pass it. Two queries at most.
    """
    role = (
        Membership.objects.of(by).filter(tenant=tenant).values_list("role", flat=True).first()
        if by.user is not None
        else None
    )
    wanted = wanted or tenant.namespaces.values_list("wanted", flat=True).first() or ""
    return member_policy.Standing(role=role or "", wanted=wanted or "active")


def managers_of(tenant: Tenant) -> list[User]:
    roles = [Membership.Role.OWNER, Membership.Role.MANAGER]
    return list(User.objects.filter(memberships__tenant=tenant, memberships__role__in=roles).order_by("pk"))


def visible_slugs(by: Actor) -> list[str]:
    """Slugs of the teams whose existence the actor may know: its own, or all for staff."""
    return list(Tenant.objects.visible_to(by).values_list("slug", flat=True))


def own_slugs(by: Actor) -> list[str]:
    """Slugs of the teams in which the actor is a member, also for staff."""
    return list(Membership.objects.of(by).values_list("tenant__slug", flat=True))
