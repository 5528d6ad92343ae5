"""The decision form answers while the approver types: fit, tick and chart, without sending anything."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts.models import User
from catalog.models import GpuClass
from tenants.models import Namespace, Plan, Tenant
from tests.e2e.accessibility import look_at
from tests.support.rows.usage import file

pytestmark = pytest.mark.browser


def test_units_that_are_typed_change_fit_and_chart(
    open_page: Callable[..., Page], team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, dana: User
) -> None:
    GpuClass.objects.filter(pk=a100.pk).update(promise_limit=16)
    filed = file(team_a, alice, **{a100.slug.replace("-", "_"): 2})
    page = open_page(f"/requests/{filed.pk}", as_user=dana)
    expect(page.get_by_text("Within the allocation limit for the whole period.")).to_be_visible()
    page.get_by_label("Comment to").fill("We have 16.")
    units = page.locator(f"#units-{filed.lines.get().pk}")
    units.fill("20")
    expect(page.locator(".line-edit")).to_contain_text("would exceed its allocation limit of 16 by 4")
    expect(page.get_by_label("Overcommit anyway")).to_be_visible()
    expect(page.locator("#curves")).to_contain_text("20")
    expect(units).to_be_focused()
    expect(page.get_by_label("Comment to")).to_have_value("We have 16.")
    look_at(page)
    units.fill("16")
    expect(page.get_by_text("Within the allocation limit for the whole period.")).to_be_visible()
    expect(page.get_by_label("Overcommit anyway")).to_have_count(0)
    # The plan arrives by itself.
    expect(page.get_by_text("It appears here when it is ready")).to_be_visible()
    Plan.objects.update(objects_planned=[], made_at=timezone.now())
    expect(page.get_by_role("heading", name="Plan: no changes")).to_be_visible()
