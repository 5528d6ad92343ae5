"""The page about a team's grants in both themes and widths, and renewal by one click."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts.models import User
from catalog.models import GpuClass
from tenants.models import Grant, Tenant
from tests.e2e.accessibility import look_at
from tests.support.rows import make

pytestmark = pytest.mark.browser
DAY = timedelta(days=1)


def test_grants_are_renewed_with_one_click(
    team_a: Tenant, a100: GpuClass, alice: User, open_page: Callable[..., Page]
) -> None:
    now = timezone.now()
    make.grant(team_a, a100, units=8, since=now - 40 * DAY, until=now - timedelta(hours=3))
    make.grant(team_a, a100, units=4, since=now - timedelta(hours=3), until=now + 60 * DAY)
    make.grant(team_a, a100, units=2, since=now + 5 * DAY, until=now + 12 * DAY, kind=Grant.Kind.BOOST)
    page = open_page("/teams/team-a/grants", as_user=alice)
    look_at(page)
    page.get_by_role("button", name="Renew").last.click()
    page.wait_for_url("**/requests/*")
    expect(page.get_by_text("Renewal requested")).to_be_visible()
