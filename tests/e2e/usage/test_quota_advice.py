"""From a suggestion to the request that was filed, in a browser."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts.models import User
from catalog.models import GpuClass
from tenants.models import Namespace, QuotaLine, Tenant
from tests.e2e.accessibility import look_at
from tests.support.rows import make
from tests.support.rows.usage import looked, used

pytestmark = pytest.mark.browser
DAY = timedelta(days=1)


@pytest.fixture
def eight(a100: GpuClass, namespace_a: Namespace, team_a: Tenant) -> GpuClass:
    """Eight GPUs for more than 30 days, in which at most two were in use at once."""
    now = timezone.now()
    GpuClass.objects.filter(pk=a100.pk).update(promise_limit=8)
    looked(a100)
    used(namespace_a, a100, peak=2, total=60, back=30)
    make.grant(team_a, a100, units=8, since=now - 40 * DAY, until=now + 20 * DAY)
    return a100


@pytest.mark.parametrize("width", [1280, 390])
def test_a_smaller_total_is_requested(open_page: Callable[..., Page], eight: GpuClass, alice: User, width: int) -> None:
    page = open_page("/teams/team-a/grants", as_user=alice, width=width)
    advice = page.get_by_role("region", name="A smaller quota would be enough")
    expect(advice).to_contain_text("In 30 days at most 2 of 8 GPUs were in use at the same time.")
    look_at(page)
    advice.get_by_role("link", name="Request 2 GPUs").click()
    expect(page.locator(f"#units-{eight.slug}")).to_have_value("2")
    expect(page.locator(f"#fit-{eight.slug}")).to_contain_text("8 → 2 GPUs")
    expect(page.get_by_label("Justification")).to_have_value(
        "In 30 days at most 2 of 8 GPUs were in use at the same time."
    )
    page.get_by_role("button", name="Submit request").click()
    page.wait_for_url("**/requests/*")
    line = QuotaLine.objects.get()
    assert (line.gpu_class, line.asked_units, line.kind) == (eight, 2, "base")
    assert line.request.justification.startswith("In 30 days at most 2 of 8 GPUs")
