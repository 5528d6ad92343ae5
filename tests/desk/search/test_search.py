"""The search finds what the person may see, and nothing else; its cost does not depend on what exists."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.api_tokens import actions as api_token_actions
from accounts.core.actor import Actor
from accounts.models import Role, User
from catalog.models import GpuClass
from cluster.models import Cluster
from desk.navigation.pages import pages_of
from desk.search.queries import search
from desk.search.types import RESULTS_MAX
from portal.docs.help import HELP
from tenants.models import Membership, Namespace, Tenant
from tests.support.rows import make, running
from workloads.models import Workload

pytestmark = pytest.mark.django_db


def page(user: User) -> Actor:
    return Actor(user=user, via="page")


def found(by: Actor | User, text: str) -> dict[str, list[str]]:
    """Kind of each group → titles."""
    actor = by if isinstance(by, Actor) else page(by)
    return {group.kind: [one.title for one in group.results] for group in search(actor, text)}


@pytest.fixture
def two_teams(team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, bob: User) -> Tenant:
    """Team A has alice, bob and the workload zebra-a; team B has nora, and the workload zebra-b."""
    team_b = make.tenant(a100.cluster, slug="team-b", namespace="team-b")
    Tenant.objects.filter(pk=team_b.pk).update(name="Zebra Lab")
    nora = make.user("Nora Zebra".replace(" ", "."))
    make.member(team_b, nora, Membership.Role.OWNER)
    running.workload(namespace_a, a100, name="zebra-a", by=bob)
    running.workload(team_b.namespaces.get(), a100, name="zebra-b", by=nora)
    return team_b


def test_members_find_what_is_of_their_teams(two_teams: Tenant, bob: User) -> None:
    assert found(bob, "zebra") == {"workload": ["zebra-a"]}
    assert [*found(bob, "team-")["team"]] == ["Team A"]
    assert found(bob, "alice") == {"person": ["Alice"]}


def test_staff_find_everything(two_teams: Tenant, olga: User) -> None:
    assert found(olga, "zebra") == {
        "team": ["Zebra Lab"],
        "workload": ["zebra-a", "zebra-b"],
        "person": ["Nora.Zebra"],
    }


def test_a_person_without_a_team_finds_no_people(two_teams: Tenant) -> None:
    sam = make.user("Sam")
    assert not {"team", "workload", "person"} & found(sam, "zebra").keys()
    assert "person" not in found(sam, "example.org")


def test_who_left_a_team_finds_it_no_more(two_teams: Tenant, team_a: Tenant, bob: User) -> None:
    Membership.objects.filter(user=bob).delete()
    assert found(bob, "zebra") == {}
    assert "page" not in found(bob, "workloads")


def test_a_teams_token_finds_only_its_team(two_teams: Tenant, team_a: Tenant, olga: User) -> None:
    """Of a member of staff, who sees all teams elsewhere."""
    make.member(team_a, olga, Membership.Role.OWNER)
    by = Actor(user=olga, via="token", confined_to="team-a")
    assert found(by, "zebra") == {"workload": ["zebra-a"]}
    assert "page" not in found(by, "health")


def test_hidden_classes_are_hidden(two_teams: Tenant, a100: GpuClass, bob: User, olga: User) -> None:
    assert found(bob, a100.slug)["class"] == [a100.name]
    GpuClass.objects.update(visibility=GpuClass.Visibility.NAMED)
    assert "class" not in found(bob, a100.slug)
    assert found(olga, a100.slug)["class"] == [a100.name]


def test_classes_are_those_of_the_cluster_of_this_installation(two_teams: Tenant, a100: GpuClass, bob: User) -> None:
    Cluster.objects.create(pk=a100.cluster_id - 1, name="an-earlier-name")
    assert found(bob, a100.slug)["class"] == [a100.name]


def test_deleted_workloads_are_gone(two_teams: Tenant, bob: User) -> None:
    Workload.objects.update(deleted_at="2026-01-01T00:00:00Z")
    assert found(bob, "zebra") == {}


def test_all_words_have_to_be_there(two_teams: Tenant, bob: User, olga: User) -> None:
    assert found(bob, "a zebra")["workload"] == ["zebra-a"]
    assert found(bob, "zebra q") == {}
    assert found(olga, "zebra lab")["team"] == ["Zebra Lab"]


@pytest.mark.parametrize("text", ["", "   ", "\0", "%", "_", "\\", "'; --", "x" * 5000])
def test_strange_texts_find_nothing(two_teams: Tenant, olga: User, text: str) -> None:
    assert "team" not in found(olga, text)


def test_each_group_is_bounded(team_a: Tenant, namespace_a: Namespace, a100: GpuClass, bob: User) -> None:
    for number in range(RESULTS_MAX + 2):
        running.workload(namespace_a, a100, name=f"train-{number}", by=bob)
    (group,) = [one for one in search(page(bob), "train-") if one.kind == "workload"]
    assert (len(group.results), group.has_more) == (RESULTS_MAX, True)


def test_the_cost_does_not_depend_on_what_exists(two_teams: Tenant, a100: GpuClass, bob: User, olga: User) -> None:
    def cost(by: User) -> int:
        with CaptureQueriesContext(connection) as asked:
            search(page(by), "team")
        return len(asked)

    before = cost(bob), cost(olga)
    for number in range(12):
        team = make.tenant(a100.cluster, slug=f"team-{number}", namespace=f"more-{number}")
        make.member(team, bob)
        make.member(team, make.user(f"Team{number}"))
    assert (cost(bob), cost(olga)) == before
    assert max(before) <= 7


# ---- pages and documentation --------------------------------------------------------------------------------------


def test_pages_are_those_that_the_person_may_open(two_teams: Tenant, bob: User) -> None:
    for user in (bob, make.user("Oscar", roles=[Role.OPERATOR]), make.approver("Ada"), make.user("Sam")):
        client = Client()
        client.force_login(user)
        pages = pages_of(page(user))
        assert pages
        for one in pages:
            assert client.get(one.href).status_code == 200, (user.name, one.href)


def test_pages_are_found_by_their_words(two_teams: Tenant, bob: User, olga: User) -> None:
    assert found(bob, "volumes")["page"] == ["Volumes"]
    assert "page" not in found(bob, "health")
    assert found(olga, "health")["page"] == ["Health"]
    assert found(olga, "idle")["page"] == ["Teams"]


def test_documentation_leads_to_its_place(bob: User) -> None:
    client = Client()
    for text, title in (("command line", "Command line"), ("revoke token of this call", "DELETE /api/v1/me/token")):
        (group,) = [one for one in search(page(bob), text) if one.kind == "help"]
        result = next(one for one in group.results if one.title == title)
        path, _, anchor = result.href.partition("#")
        assert f'id="{anchor}"' in client.get(path).content.decode()


def test_every_section_of_the_help_has_its_text() -> None:
    text = Client().get("/help").content.decode()
    assert [one.id for one in HELP if f'id="{one.id}">{one.title}<' not in text] == []


# ---- page and API -------------------------------------------------------------------------------------------------


def answer(user: User, path: str) -> Any:
    client = Client()
    client.force_login(user)
    return client.get(path)


def test_the_page_shows_groups_and_escapes_the_text(two_teams: Tenant, bob: User) -> None:
    text = answer(bob, "/search?q=zebra").content.decode()
    assert 'href="/teams/team-a/workloads/zebra-a"' in text
    assert "zebra-b" not in text
    assert "<i>&" not in answer(bob, "/search?q=%3Ci%3E%26").content.decode()
    assert "Nothing found" in answer(bob, "/search?q=nothing-like-this").content.decode()
    assert answer(bob, "/search").status_code == 200


def test_staff_are_told_that_workloads_are_found_by_their_beginning(two_teams: Tenant, bob: User, olga: User) -> None:
    assert "workload" in found(bob, "ebra")
    assert "workload" not in found(olga, "ebra")
    told = "by the beginning of their name"
    assert told in answer(olga, "/search?q=ebra").text
    assert told not in answer(bob, "/search?q=ebra").text


def test_the_api_answers_the_same(two_teams: Tenant, bob: User, settings: Any) -> None:
    settings.PORTAL_URL = "http://testserver"
    assert answer(bob, "/api/v1/search?q=zebra").json() == {
        "items": [
            {
                "kind": "workload",
                "results": [
                    {
                        "title": "zebra-a",
                        "detail": "notebook of Team A",
                        "url": "http://testserver/teams/team-a/workloads/zebra-a",
                    }
                ],
                "has_more": False,
            }
        ]
    }
    for query in ("", "?q=", "?q=%20"):
        assert answer(bob, f"/api/v1/search{query}").status_code == 422


def test_a_token_of_a_team_in_the_api(two_teams: Tenant, team_a: Tenant, alice: User) -> None:
    make.member(two_teams, alice)
    _, text = api_token_actions.create_token(
        name="ci", scopes=["read"], expires_in_days=1, tenant="team-a", by=page(alice)
    )
    found = Client().get("/api/v1/search?q=zebra", headers={"Authorization": f"Bearer {text}"}).json()
    assert [[one["title"] for one in group["results"]] for group in found["items"]] == [["zebra-a"]]
