"""Classes for named teams: who may know of them, who may ask for them and start on them."""

from __future__ import annotations

import pytest

from accounts.actor import Actor, system
from accounts.models import Role, User
from catalog.models import GpuClass
from tenants import queries
from tenants.models import ClassAccess, Tenant
from tests import make

SYSTEM = system("test")


def by(user: User) -> Actor:
    return Actor(user, via="page")


@pytest.fixture
def secret(a100: GpuClass, unique: str) -> GpuClass:
    """A class beside the open A100 that only named teams may know of."""
    return make.gpu_class(
        a100.cluster,
        slug=f"secret-{unique}",
        name="B300 pilot",
        visibility=GpuClass.Visibility.NAMED,
        node_labels={"secret": unique},
        borrowing_limit=2,
    )


def slugs(who: Actor, gpu_class: GpuClass) -> list[str]:
    return [one.slug for one in queries.visible_classes(who, gpu_class.cluster)]


def test_a_class_for_named_teams_is_seen_by_their_members_and_staff_alone(
    a100: GpuClass, secret: GpuClass, team_a: Tenant, alice: User, bob: User, charlie: User, dana: User
) -> None:
    auditor = make.user("Aron", roles=[Role.AUDITOR])
    assert slugs(by(alice), secret) == [a100.slug]
    ClassAccess.objects.create(tenant=team_a, gpu_class=secret)
    both = [a100.slug, secret.slug]
    assert slugs(by(alice), secret) == slugs(by(bob), secret) == both
    assert slugs(by(charlie), secret) == [a100.slug]
    assert slugs(by(dana), secret) == slugs(by(auditor), secret) == slugs(SYSTEM, secret) == both


def test_a_draft_is_seen_by_nobody_here(a100: GpuClass, secret: GpuClass, team_a: Tenant, alice: User) -> None:
    ClassAccess.objects.create(tenant=team_a, gpu_class=secret)
    GpuClass.objects.filter(pk=secret.pk).update(life_cycle=GpuClass.LifeCycle.DRAFT)
    assert slugs(by(alice), secret) == slugs(SYSTEM, secret) == [a100.slug]


def test_a_team_uses_what_is_for_everyone_and_what_it_was_named_for(
    a100: GpuClass, secret: GpuClass, team_a: Tenant, team_b: Tenant
) -> None:
    ClassAccess.objects.create(tenant=team_a, gpu_class=secret)
    assert [queries.may_use(team.pk, one) for team in (team_a, team_b) for one in (a100, secret)] == [
        True,
        True,
        True,
        False,
    ]
    named = GpuClass.objects.filter(queries.usable_by(team_b.pk))
    assert list(named) == [a100]


@pytest.fixture
def team_b(a100: GpuClass, charlie: User, unique: str) -> Tenant:
    found = make.tenant(a100.cluster, slug="team-b", namespace=f"team-b-{unique}")
    make.member(found, charlie)
    return found
