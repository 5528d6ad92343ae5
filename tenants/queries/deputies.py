"""Who decides about what: approvers by their role, and their deputies while they stand in. Everybody asks here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, QuerySet
from django.utils import timezone

from accounts.actor import Actor
from accounts.models import Role, User
from portal.errors import Refusal
from tenants.deputy_policy import Right, Rights, may_end
from tenants.models import ApproverFor, Deputy, Membership, Tenant


def rights(by: Actor) -> Rights:
    """One query; three for a deputy. Asked several times for one page, so it joins no table of everybody. A team's
    token decides nothing.
    """
    if by.user is None or by.confined_to:
        return Rights()
    lenders = Deputy.objects.in_force().filter(deputy=by.user).values("approver")
    rows = ApproverFor.objects.filter(Q(user=by.user) | Q(user__in=lenders))
    slugs: dict[int, set[str | None]] = defaultdict(set)
    for pk, slug in rows.values_list("user", "gpu_class__slug"):
        slugs[pk].add(slug)
    own_slugs = slugs.pop(by.user.pk, set())
    own = Right(by.user.pk, by.user.name, _classes(own_slugs)) if by.has_role(Role.APPROVER) else None
    return Rights(own, tuple(_lent(slugs)) if slugs else ())


def _lent(slugs: Mapping[int, Collection[str | None]]) -> Iterator[Right]:
    teams: dict[int, set[int]] = defaultdict(set)
    for pk, tenant_id in Membership.objects.filter(user__in=slugs).values_list("user", "tenant"):
        teams[pk].add(tenant_id)
    for pk, name in User.objects.filter(pk__in=slugs).order_by("name", "pk").values_list("pk", "name"):
        yield Right(pk, name, _classes(slugs[pk]), frozenset(teams[pk]))


def _classes(slugs: Collection[str | None]) -> frozenset[str] | None:
    return None if None in slugs else frozenset(slug for slug in slugs if slug)


def is_deputy(user: User) -> bool:
    """Of some approver, now. One query."""
    return Deputy.objects.in_force().filter(deputy=user).exists()


def lines_of(mine: Rights) -> Q:
    """Of QuotaLine rows: those about which these rights decide. No query."""
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
    """Who may decide about at least one of these classes; the tenant's own members are left out. One query."""
    covers = Q(approver_for__gpu_class=None) | Q(approver_for__gpu_class__in=class_ids)
    approvers = approving().filter(covers, approver_for__isnull=False).exclude(memberships__tenant=tenant)
    found = with_deputies(approvers).exclude(memberships__tenant=tenant)
    return list(found.order_by("pk"))


def approving() -> QuerySet[User]:
    return User.objects.filter(is_active=True, roles__contains=[Role.APPROVER])


def with_deputies(approvers: QuerySet[User]) -> QuerySet[User]:
    """These, and who stands in for them now."""
    standing_in = Deputy.objects.in_force().filter(approver__in=approvers.values("pk")).values("deputy")
    return User.objects.filter(Q(pk__in=approvers.values("pk")) | Q(pk__in=standing_in))


# ---- who stands in for whom ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DeputyRow:
    """`state`: later, now, or over; void while the approver is none or an account is suspended. `refusal`: why this
    person may not end it.
    """

    pk: int
    approver: str
    deputy: str
    starts: datetime
    ends: datetime
    state: str
    is_mine: bool
    refusal: Refusal | None


def deputy_rows(by: Actor) -> list[DeputyRow]:
    """What the actor may see and what is not over, the soonest start first. Two queries."""
    return rows_of_deputies(deputies_of(by).order_by("period", "pk"), by)


def deputies_of(by: Actor) -> QuerySet[Deputy]:
    found = Deputy.objects.visible_to(by).filter(ended_at=None, period__endswith__gt=timezone.now())
    return found.select_related("approver", "deputy")


def rows_of_deputies(rows: Iterable[Deputy], by: Actor) -> list[DeputyRow]:
    """One query, and that for the rows."""
    at, rows = timezone.now(), list(rows)
    in_force = set(Deputy.objects.in_force().filter(pk__in=[row.pk for row in rows]).values_list("pk", flat=True))
    return [_row(row, by, is_in_force=row.pk in in_force, at=at) for row in rows]


def deputy_row(row: Deputy, by: Actor) -> DeputyRow:
    """One query."""
    return _row(row, by, is_in_force=Deputy.objects.in_force().filter(pk=row.pk).exists(), at=timezone.now())


def _row(row: Deputy, by: Actor, *, is_in_force: bool, at: datetime) -> DeputyRow:
    is_over = row.ended_at is not None or row.period.upper <= at
    waiting = "later" if row.period.lower > at else "void"
    return DeputyRow(
        pk=row.pk,
        approver=row.approver.name,
        deputy=row.deputy.name,
        starts=row.period.lower,
        ends=row.ended_at or row.period.upper,
        state="over" if is_over else "now" if is_in_force else waiting,
        is_mine=row.approver_id == by.user_id,
        refusal=may_end(by, approver=row.approver_id, deputy=row.deputy_id, is_over=is_over),
    )
