"""The usage reports in a browser: narrow and wide, light and dark, from a team's home and from the list of teams."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from playwright.sync_api import Page, expect

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster
from tenants.models import Tenant
from tests.e2e.accessibility import look_at
from tests.support.rows import mirrored
from tests.support.rows.usage import budget
from tests.usage.reports.october import NOW, october
from usage.reports import queries

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def team_b(
    monkeypatch: pytest.MonkeyPatch, cluster: Cluster, team_a: Tenant, a100: GpuClass, alice: User, bob: User
) -> Tenant:
    monkeypatch.setattr(queries, "timezone", SimpleNamespace(now=lambda: NOW))
    mirrored.hardware_seen(cluster)
    return october(cluster, team_a, a100, alice, bob)


def test_report_of_a_team(open_page: Callable[..., Page], team_b: Tenant, alice: User) -> None:
    page = open_page("/teams/team-a", as_user=alice)
    page.get_by_role("link", name="Usage report").click()
    expect(page.get_by_role("heading", name="Usage of Team A", level=1)).to_be_visible()
    lines = page.get_by_role("region", name="Table of usage by person, class and priority")
    expect(lines.get_by_role("row", name="Pods outside the portal")).to_contain_text("6.16")
    look_at(page)
    page.set_viewport_size({"width": 390, "height": 900})
    # Without scrolling sideways.
    expect(lines.get_by_role("columnheader", name="Cost")).to_be_in_viewport(ratio=1)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.get_by_role("link", name="September 2026").click()
    expect(page).to_have_url("/teams/team-a/usage?month=2026-09")
    expect(page.get_by_text("Nothing earlier")).to_be_visible()
    page.get_by_role("link", name="October 2026").click()
    with page.expect_download() as loaded:
        page.get_by_role("link", name="CSV").click()
    assert loaded.value.suggested_filename == "usage-team-a-2026-10.csv"


def test_report_of_all_teams(open_page: Callable[..., Page], team_b: Tenant, olga: User) -> None:
    page = open_page("/operators/teams", as_user=olga)
    page.get_by_role("link", name="Usage", exact=True).click()
    expect(page.get_by_role("heading", name="Usage", level=1)).to_be_visible()
    look_at(page)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.get_by_role("link", name="Team B").click()
    expect(page).to_have_url("/teams/team-b/usage?month=2026-10")


def test_an_empty_month(open_page: Callable[..., Page], team_a: Tenant, alice: User, olga: User) -> None:
    for person, path in ((alice, "/teams/team-a/usage"), (olga, "/operators/usage")):
        page = open_page(path, as_user=person)
        expect(page.get_by_role("heading", name="No usage in this month")).to_be_visible()
        look_at(page)


def test_a_budget_is_confirmed_by_an_owner_and_set_by_operators(
    open_page: Callable[..., Page], team_a: Tenant, alice: User, olga: User
) -> None:
    budget(team_a, cost="120", at_limit="confirm")
    page = open_page("/teams/team-a/usage", as_user=alice)
    expect(page.get_by_text("120.00 (120%)")).to_be_visible()
    look_at(page)
    page.get_by_role("button", name="Confirm new launches").click()
    expect(page.get_by_text("Alice confirmed launches")).to_be_visible()
    page = open_page("/teams/team-a/usage", as_user=olga)
    look_at(page)
    page.get_by_label("Budget a month").fill("300")
    page.get_by_label("At 100 %").select_option("stop")
    page.get_by_role("button", name="Save budget").click()
    expect(page.get_by_text("300.00 a month")).to_be_visible()
