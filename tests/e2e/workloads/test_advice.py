"""What helps a wait, in a browser: fetched into its place in the list, shown on the page, and its form filled in."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from accounts.models import User
from catalog.models import GpuClass, Image
from tenants.models import Namespace, Tenant
from tests.e2e.accessibility import look_at
from tests.support.rows import make, mirrored
from tests.support.rows.waiting_runs import IMAGE, runs, waits

pytestmark = pytest.mark.browser


@pytest.fixture
def house(team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User) -> Tenant:
    """Three of four cards are in use; what waits asks for two."""
    mirrored.hardware_seen(namespace_a.cluster)
    make.grant(team_a, a100, units=4)
    Image.objects.create(name="minimal", reference=IMAGE, kind="notebook", vendor="nvidia")
    runs(namespace_a, a100, alice, "busy", units=3)
    waits(namespace_a, a100, alice)
    return team_a


def test_a_step_stands_beside_its_wait_and_leads_to_the_form(
    open_page: Callable[..., Page], house: Tenant, alice: User
) -> None:
    page = open_page("/teams/team-a", as_user=alice)
    step = page.locator("#helps-waits").get_by_role("link", name="Request 1 GPU instead of 2")
    expect(step).to_be_visible()
    step.click()
    expect(page.get_by_label("Units")).to_have_value("1")


def test_the_page_of_what_waits(open_page: Callable[..., Page], house: Tenant, alice: User) -> None:
    page = open_page("/teams/team-a/workloads/waits", as_user=alice)
    expect(page.locator("#next-steps").get_by_role("link", name="Request 1 GPU instead of 2")).to_be_visible()
    look_at(page)
