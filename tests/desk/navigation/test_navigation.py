"""The navigation bar: its entries for each user, and its queries."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import RequestFactory
from django.urls import resolve
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass
from desk.navigation.context_processors import page_context
from desk.navigation.queries import page_facts
from tenants.models import Tenant
from tenants.requests import actions
from tenants.requests.types import RequestedLine
from tests.support.rows import make


def bar(user: User | AnonymousUser, path: str = "/catalog") -> dict:
    request = RequestFactory().get(path)
    request.user = user
    request.resolver_match = resolve(path)
    return page_context(request)


def labels(found: dict) -> list[str]:
    return [item.label for item in found["nav_items"]]


def here(found: dict) -> list[str]:
    return [item.label for item in found["nav_items"] if item.current]


def test_nobody_finds_nothing() -> None:
    found = bar(AnonymousUser())
    assert (found["nav_items"], found["tenants"], found["theme"]) == ([], [], "auto")


def test_members_find_their_team(team_a: Tenant, bob: User) -> None:
    found = bar(bob)
    assert labels(found) == ["Home", "Catalog", "Cluster", "Workloads", "Requests", "Team"]
    assert found["current_tenant"].slug == "team-a"


def test_a_person_in_two_teams_sees_which_one_the_page_is_about(team_a: Tenant, bob: User) -> None:
    make.member(make.tenant(team_a.namespaces.get().cluster, slug="team-b"), bob)
    found = bar(bob, "/teams/team-b/workloads")
    assert [(team.slug, team.current) for team in found["tenants"]] == [("team-a", False), ("team-b", True)]
    assert found["current_tenant"].slug == "team-b"


@pytest.mark.parametrize(
    ("path", "entry"),
    [
        ("/teams/team-a", "Home"),
        ("/teams/team-a/launch", "Workloads"),
        ("/teams/team-a/workloads/retina-seg", "Workloads"),
        ("/requests/1", "Requests"),
        ("/teams/team-a/members", "Team"),
    ],
)
def test_the_entry_of_the_page_is_marked(team_a: Tenant, alice: User, path: str, entry: str) -> None:
    assert here(bar(alice, path)) == [entry]


def test_approvers_see_how_many_requests_wait(team_a: Tenant, a100: GpuClass, alice: User, dana: User) -> None:
    now = timezone.now()
    asked = RequestedLine(gpu_class=a100.slug, units=1, starts=now, ends=now + timedelta(days=1))
    actions.file_request("team-a", lines=[asked], justification="A test of a day.", by=Actor(user=alice, via="page"))

    found = bar(dana, "/requests/1")

    assert labels(found) == ["Catalog", "Cluster", "Inbox", "History"]
    assert [item.count for item in found["nav_items"] if item.label == "Inbox"] == [1]
    assert here(found) == ["Inbox"]


def test_operators_find_health_and_staff_their_links(olga: User) -> None:
    found = bar(olga)
    assert labels(found) == ["Overview", "Catalog", "Cluster", "History", "Teams", "Queue", "Health", "Nodes", "People"]
    assert [link["href"] for link in found["staff_links"]] == [
        "/operators/catalog",
        "/operators/announcements",
        "/admin/",
        "/styleguide",
    ]


def test_a_members_bar_costs_one_query(
    team_a: Tenant, bob: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(1):
        bar(bob)


def test_each_person_is_told_of_their_own_teams(team_a: Tenant, bob: User, charlie: User) -> None:
    """By one statement, which is composed once."""
    teams = [("team-a", "Team A")]
    assert [page_facts(who).teams for who in (bob, charlie, bob)] == [teams, [], teams]
