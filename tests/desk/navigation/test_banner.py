"""The banner is on every page: also where nobody is signed in, and on error pages."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounts.models import User
from catalog.models import Banner
from cluster.models import Cluster
from tenants.models import Namespace
from tests.support.rows import make

pytestmark = pytest.mark.django_db
TEXT = "Maintenance on <b>Friday</b>."
SHOWN = "Maintenance on &lt;b&gt;Friday&lt;/b&gt;."


@pytest.fixture
def banner(cluster: Cluster) -> Banner:
    return Banner.objects.create(cluster=cluster, text=TEXT)


def body(client: Client, path: str) -> str:
    return client.get(path).content.decode()


@pytest.mark.parametrize("path", ["/login", "/login/password", "/api/", "/nothing-here"])
def test_before_signing_in(banner: Banner, path: str) -> None:
    assert body(Client(), path).count(SHOWN) == 1


@pytest.mark.parametrize(
    "path",
    ["/catalog", "/cluster", "/account", "/tokens", "/notices", "/teams/team-a", "/teams/team-a/workloads", "/nowhere",
     "/teams/team-x", "/teams/team-a/requests/new"],
)  # fmt: skip
def test_for_members(banner: Banner, namespace_a: Namespace, alice: User, path: str) -> None:
    client = Client()
    client.force_login(alice)
    assert body(client, path).count(SHOWN) == 1


def test_for_people_without_a_team(banner: Banner) -> None:
    client = Client()
    client.force_login(make.user("Nora"))
    assert body(client, "/start").count(SHOWN) == 1


def test_not_after_its_end(banner: Banner, alice: User) -> None:
    Banner.objects.update(until=timezone.now() - timedelta(seconds=1))
    client = Client()
    assert SHOWN not in body(client, "/login")
    client.force_login(alice)
    assert SHOWN not in body(client, "/catalog")


def test_it_costs_people_who_are_not_signed_in_one_query(
    banner: Banner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    body(Client(), "/api/")
    with django_assert_num_queries(1):
        body(Client(), "/api/")
