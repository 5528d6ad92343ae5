"""Classes for named teams: who may see them, who may request them and start workloads on them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from accounts.core.actor import Actor, system_actor
from accounts.models import Event, Role, User
from catalog.models import GpuClass
from portal.core.errors import Refused
from tenants.class_access import actions as class_access_actions
from tenants.class_access import queries
from tenants.models import ClassAccess, Namespace, QuotaLine, Tenant
from tenants.provisioning import queries as provisioning_queries
from tenants.requests import actions
from tenants.requests.types import RequestedLine
from tests.support.rows import make

SYSTEM = system_actor("test")


def by(user: User) -> Actor:
    return Actor(user, via="page")


@pytest.fixture
def secret(a100: GpuClass, unique: str) -> GpuClass:
    """A class beside the open A100 that only named teams may see."""
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
    assert [queries.may_use_class(team.pk, one) for team in (team_a, team_b) for one in (a100, secret)] == [
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


def ask(team: Tenant, slug: str, who: User, units: int = 1) -> None:
    now = timezone.now()
    lines = [RequestedLine(slug, units, now, now + timedelta(days=1))]
    actions.file_request(team.slug, lines=lines, justification="To try it.", by=by(who))


def test_a_team_that_may_not_know_of_it_is_told_what_an_unknown_class_is_told(
    secret: GpuClass, team_a: Tenant, alice: User, dana: User
) -> None:
    told = []
    for slug in ("no-such", secret.slug):
        with pytest.raises(Refused) as refused:
            ask(team_a, slug, alice)
        told.append((refused.value.code, refused.value.refusal.status, str(refused.value).replace(slug, "…")))
    assert told[0] == told[1] == ("unknown_class", 422, "There is no class '…'. See the catalog.")

    class_access_actions.allow_team(secret.pk, tenant=team_a.slug, by=SYSTEM)
    ask(team_a, secret.slug, alice)
    assert QuotaLine.objects.get().gpu_class == secret


def test_the_form_for_requests_leaves_out_what_the_team_may_not_use(
    a100: GpuClass, secret: GpuClass, team_a: Tenant, team_b: Tenant, alice: User
) -> None:
    """Alice sees the class through another team of hers; team A may still not request it."""
    client = Client()
    client.force_login(alice)
    make.member(team_b, alice)
    class_access_actions.allow_team(secret.pk, tenant=team_b.slug, by=SYSTEM)
    page = client.get(f"/teams/{team_a.slug}/requests/new").content.decode()
    assert a100.name in page
    assert secret.name not in page
    class_access_actions.allow_team(secret.pk, tenant=team_a.slug, by=SYSTEM)
    assert secret.name in client.get(f"/teams/{team_a.slug}/requests/new").content.decode()


def test_access_that_ends_takes_back_borrowing_and_not_what_was_granted(secret: GpuClass, team_a: Tenant) -> None:
    namespace = team_a.namespaces.get()

    def share() -> tuple[int, int]:
        found = {one.slug: one for one in provisioning_queries.class_shares(namespace, {secret.pk: 3})}[secret.slug]
        return found.in_force, found.borrowing_limit

    assert share() == (3, 0)
    class_access_actions.allow_team(secret.pk, tenant=team_a.slug, by=SYSTEM)
    assert share() == (3, 2)
    class_access_actions.disallow_team(secret.pk, tenant=team_a.slug, by=SYSTEM)
    assert share() == (3, 0)


def test_who_may_use_a_class_is_said_once_in_one_event_each_and_wakes_the_queue(
    secret: GpuClass, team_a: Tenant, olga: User
) -> None:
    before = Namespace.objects.get(tenant=team_a).generation
    for _ in range(2):
        class_access_actions.allow_team(secret.pk, tenant=team_a.slug, by=by(olga))
    class_access_actions.disallow_team(secret.pk, tenant=team_a.slug, by=by(olga))
    assert Namespace.objects.get(tenant=team_a).generation == before + 2
    events = Event.objects.filter(verb__startswith="access.").order_by("pk")
    assert [(one.verb, one.tenant, one.name) for one in events] == [
        ("access.allowed", team_a.slug, secret.name),
        ("access.ended", team_a.slug, secret.name),
    ]
    with pytest.raises(Refused) as refused:
        class_access_actions.disallow_team(secret.pk, tenant=team_a.slug, by=by(olga))
    assert refused.value.code == "not_found"


def test_only_operators_say_who_may_use_a_class(secret: GpuClass, team_a: Tenant, alice: User, dana: User) -> None:
    for who in (alice, dana):
        for verb in (class_access_actions.allow_team, class_access_actions.disallow_team):
            with pytest.raises(Refused) as refused:
                verb(secret.pk, tenant=team_a.slug, by=by(who))
            assert refused.value.code == "not_allowed"


def test_the_form_for_requests_says_what_comes_after_a_class_that_is_retired(
    a100: GpuClass, team_a: Tenant, alice: User
) -> None:
    h200 = make.gpu_class(a100.cluster, slug="h200", name="H200", node_labels={"gpu": "h200"})
    GpuClass.objects.filter(pk=a100.pk).update(
        life_cycle="retiring", successor=h200, retiring_message="The cards are too old"
    )
    make.grant(team_a, a100, units=1)
    client = Client()
    client.force_login(alice)
    page = client.get(f"/teams/{team_a.slug}/requests/new?class={a100.slug}").content.decode()
    assert (
        f"{a100.name} is being retired. Running workloads continue. Its successor is H200. The cards are too old."
        in page
    )
    with pytest.raises(Refused, match="the team has 1 and cannot get more") as refused:
        ask(team_a, a100.slug, alice, units=2)
    assert str(refused.value).endswith("Choose its successor, H200.")

    pages = ("/catalog", f"/teams/{team_a.slug}/requests/new?class={a100.slug}", f"/teams/{team_a.slug}/launch")
    assert all("Its successor is H200." in client.get(page).content.decode() for page in pages)
    GpuClass.objects.filter(pk=h200.pk).update(visibility="named")
    assert not any("H200" in client.get(page).content.decode() for page in pages)
    with pytest.raises(Refused, match="Choose another class"):
        ask(team_a, a100.slug, alice, units=2)
