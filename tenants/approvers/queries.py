"""Who decides what: approvers by their role, and their delegates. All other code uses these functions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping

from django.db.models import Q, QuerySet

from accounts.core.actor import Actor
from accounts.models import Role, User
from tenants.approvers.policy import ApproverRight, ApproverRights
from tenants.models import ApproverFor, Deputy, Membership, Tenant


def rights_of(by: Actor) -> ApproverRights:
    """One query; three for a delegate. It runs several times per page, so it joins no table of all accounts. A team's
    token has no rights to decide.
    """
    if by.user is None or by.confined_to:
        return ApproverRights()
    lenders = Deputy.objects.in_force().filter(deputy=by.user).values("approver")
    rows = ApproverFor.objects.filter(Q(user=by.user) | Q(user__in=lenders))
    slugs: dict[int, set[str | None]] = defaultdict(set)
    for pk, slug in rows.values_list("user", "gpu_class__slug"):
        slugs[pk].add(slug)
    own_slugs = slugs.pop(by.user.pk, set())
    own = ApproverRight(by.user.pk, by.user.name, _classes(own_slugs)) if by.has_role(Role.APPROVER) else None
    return ApproverRights(own, tuple(_delegated_rights(slugs)) if slugs else ())


def _delegated_rights(slugs: Mapping[int, Collection[str | None]]) -> Iterator[ApproverRight]:
    teams: dict[int, set[int]] = defaultdict(set)
    for pk, tenant_id in Membership.objects.filter(user__in=slugs).values_list("user", "tenant"):
        teams[pk].add(tenant_id)
    for pk, name in User.objects.filter(pk__in=slugs).order_by("name", "pk").values_list("pk", "name"):
        yield ApproverRight(pk, name, _classes(slugs[pk]), frozenset(teams[pk]))


def _classes(slugs: Collection[str | None]) -> frozenset[str] | None:
    return None if None in slugs else frozenset(slug for slug in slugs if slug)


def lines_decided_by(mine: ApproverRights) -> Q:
    """Filters QuotaLine rows to those that these rights allow to decide. No query."""
    found = Q(pk__in=[])
    if mine.own:
        found |= _of_classes(mine.own.classes)
    for right in mine.lent:
        barred = Q(tenant__in=right.teams) | Q(request__filed_by=right.approver_id)
        found |= _of_classes(right.classes) & ~barred
    return found


def _of_classes(slugs: frozenset[str] | None) -> Q:
    return ~Q(pk__in=[]) if slugs is None else Q(gpu_class__slug__in=slugs)


def approvers_of(class_ids: Collection[int], *, tenant: Tenant) -> list[User]:
    """Returns who may decide at least one of these classes, without the team's own members. One query."""
    covers = Q(approver_for__gpu_class=None) | Q(approver_for__gpu_class__in=class_ids)
    approvers = active_approvers().filter(covers, approver_for__isnull=False).exclude(memberships__tenant=tenant)
    found = with_delegates(approvers).exclude(memberships__tenant=tenant)
    return list(found.order_by("pk"))


def active_approvers() -> QuerySet[User]:
    return User.objects.filter(is_active=True, roles__contains=[Role.APPROVER])


def with_delegates(approvers: QuerySet[User]) -> QuerySet[User]:
    """Returns these approvers and their current delegates."""
    standing_in = Deputy.objects.in_force().filter(approver__in=approvers.values("pk")).values("deputy")
    return User.objects.filter(Q(pk__in=approvers.values("pk")) | Q(pk__in=standing_in))


# ---- classes of an approver or delegate ----------------------------------------------------------------------------


def classes_decided_by(by: Actor) -> frozenset[str] | None:
    """Slugs of the classes that the actor decides, also as a delegate; None for all of them."""
    return rights_of(by).classes
