"""Storage in a browser: found in the catalog, asked for beside cards, held on the team's home."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from accounts.models import User
from catalog.models import GpuClass
from tenants.models import QuotaLine, Tenant
from tests.e2e.accessibility import look_at
from tests.support.rows import make

pytestmark = pytest.mark.browser


def test_storage_is_found_asked_for_and_held(
    team_a: Tenant, a100: GpuClass, alice: User, dana: User, open_page: Callable[..., Page]
) -> None:
    storage = make.storage(a100.cluster)
    make.grant(team_a, storage, units=50)
    hers = open_page("/catalog", as_user=alice)
    look_at(hers)
    hers.get_by_role("link", name=storage.name).click()
    expect(hers.get_by_role("heading", name=storage.name)).to_be_visible()
    look_at(hers)
    hers.get_by_role("link", name="Request").last.click()
    look_at(hers)
    hers.locator(f"#units-{storage.slug}").fill("200")
    hers.get_by_label("Another class").select_option(a100.slug)
    hers.get_by_role("button", name="Add another class").click()
    hers.locator(f"#units-{a100.slug}").fill("2")
    hers.get_by_label("Justification").fill("A data set of 150 GiB.")
    hers.get_by_role("button", name="Submit request").click()
    expect(hers.get_by_text("Requested: 200 GiB")).to_be_visible()
    look_at(hers)
    assert set(QuotaLine.objects.values_list("gpu_class", "asked_units")) == {(storage.pk, 200), (a100.pk, 2)}

    home = open_page("/teams/team-a", as_user=alice)
    expect(home.get_by_text("volumes, in GiB; expires on")).to_be_visible()
    look_at(home)
    grants = open_page("/teams/team-a/grants", as_user=alice)
    expect(grants.get_by_text("After that, new volumes are rejected")).to_be_visible()
    look_at(grants)
