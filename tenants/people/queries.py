"""Accounts as administrators see them: roles, suspension, and the classes that each account decides."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Exists, OuterRef

from accounts.credentials.queries import second_factor_holders
from accounts.models import Role, User
from tenants.models import ApproverFor, Membership

OWNER = Membership.Role.OWNER


@dataclass(frozen=True)
class ClassName:
    slug: str
    name: str


@dataclass(frozen=True)
class PersonRow:
    """`decides`: slugs of the classes given; they apply while the person is an approver. `decides_all`: every class,
    including future ones.
    """

    pk: int
    name: str
    email: str
    roles: list[str]
    is_suspended: bool
    joined_at: datetime
    last_login: datetime | None
    has_password: bool
    has_second_factor: bool
    decides_all: bool
    decides: list[ClassName] = field(default_factory=list)

    @property
    def slugs(self) -> list[str]:
        return [one.slug for one in self.decides]

    @property
    def is_approver(self) -> bool:
        return Role.APPROVER in self.roles


@dataclass(frozen=True)
class TeamOfPerson:
    """`is_only_owner`: no other active account owns it."""

    slug: str
    name: str
    role: str
    is_only_owner: bool


def person_rows(users: Sequence[User]) -> list[PersonRow]:
    """Two queries."""
    guarded = second_factor_holders(users)
    given: dict[int, list[ClassName | None]] = defaultdict(list)
    rows = ApproverFor.objects.filter(user__in=users).order_by("gpu_class__slug")
    for pk, slug, name in rows.values_list("user", "gpu_class__slug", "gpu_class__name"):
        given[pk].append(ClassName(slug, name) if slug else None)
    return [
        PersonRow(
            pk=user.pk,
            name=user.name,
            email=user.email,
            roles=[role for role in Role.values if role in user.roles],
            is_suspended=not user.is_active,
            joined_at=user.joined_at,
            last_login=user.last_login,
            has_password=user.has_usable_password(),
            has_second_factor=user.pk in guarded,
            decides_all=None in given[user.pk],
            decides=[one for one in given[user.pk] if one],
        )
        for user in users
    ]


def teams_of(user: User) -> list[TeamOfPerson]:
    """By slug. One query."""
    others = Membership.objects.filter(tenant=OuterRef("tenant"), role=OWNER, user__is_active=True).exclude(user=user)
    rows = Membership.objects.filter(user=user).annotate(others=Exists(others)).order_by("tenant__slug")
    return [
        TeamOfPerson(slug, name, role, role == OWNER and not others)
        for slug, name, role, others in rows.values_list("tenant__slug", "tenant__name", "role", "others")
    ]
