"""Delegations that an actor may see, with their state."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Role, User
from portal.core.errors import Refusal
from tenants.approvers.delegation.policy import may_end_delegation
from tenants.models import Deputy


def roles_lent_to(user: User) -> frozenset[str]:
    """The staff roles whose rights this person has as a delegate, now or from a later date. Void delegations count: the
    approver may get the role back. One query.
    """
    lent = Deputy.objects.filter(deputy=user, ended_at=None, period__endswith__gt=Now())
    return frozenset({str(Role.APPROVER)}) if lent.exists() else frozenset()


@dataclass(frozen=True)
class DelegationRow:
    """`state`: later, now, or over; void if the approver lost the role or an account is suspended. `refusal`: why this
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


def delegation_rows(by: Actor) -> list[DelegationRow]:
    """Returns delegations that the actor may see and that are not over, earliest start first. Two queries."""
    return rows_of_delegations(delegations_of(by).order_by("period", "pk"), by)


def delegations_of(by: Actor) -> QuerySet[Deputy]:
    found = Deputy.objects.visible_to(by).filter(ended_at=None, period__endswith__gt=timezone.now())
    return found.select_related("approver", "deputy")


def rows_of_delegations(rows: Iterable[Deputy], by: Actor) -> list[DelegationRow]:
    """One query, plus the one for the rows."""
    at, rows = timezone.now(), list(rows)
    in_force = set(Deputy.objects.in_force().filter(pk__in=[row.pk for row in rows]).values_list("pk", flat=True))
    return [_row(row, by, is_in_force=row.pk in in_force, at=at) for row in rows]


def delegation_row(row: Deputy, by: Actor) -> DelegationRow:
    """One query."""
    return _row(row, by, is_in_force=Deputy.objects.in_force().filter(pk=row.pk).exists(), at=timezone.now())


def _row(row: Deputy, by: Actor, *, is_in_force: bool, at: datetime) -> DelegationRow:
    is_over = row.ended_at is not None or row.period.upper <= at
    waiting = "later" if row.period.lower > at else "void"
    return DelegationRow(
        pk=row.pk,
        approver=row.approver.name,
        deputy=row.deputy.name,
        starts=row.period.lower,
        ends=row.ended_at or row.period.upper,
        state="over" if is_over else "now" if is_in_force else waiting,
        is_mine=row.approver_id == by.user_id,
        refusal=may_end_delegation(by, approver=row.approver_id, deputy=row.deputy_id, is_over=is_over),
    )
