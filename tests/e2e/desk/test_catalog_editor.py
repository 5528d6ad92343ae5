"""The catalog's editor in a browser: sections of a kind of class, a preview, a refusal beside its field."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from accounts.models import Role, User
from catalog.models import GpuClass
from tests.e2e.accessibility import look_at
from tests.support.rows import mirrored

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_class_is_edited_with_a_preview(open_page: Callable[..., Page], a100: GpuClass, olga: User) -> None:
    # The second factor is of administrators' sessions here.
    olga.roles = [*olga.roles, Role.ADMIN]
    olga.save()
    mirrored.hardware_seen(a100.cluster)
    page = open_page("/operators/catalog", as_user=olga)
    look_at(page)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.get_by_role("link", name=a100.name).click()
    look_at(page)
    page.set_viewport_size({"width": 1280, "height": 900})
    expect(page.get_by_label("Device class")).to_be_hidden()
    expect(page.get_by_label("Replicas")).to_be_hidden()
    page.locator("#id_sharing").select_option("time-slicing")
    expect(page.get_by_label("Replicas")).to_be_visible()
    page.locator("#id_sharing").select_option("none")
    page.get_by_label("Borrowing limit").fill("5")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("borrowing_limit 0 → 5")).to_be_visible()
    look_at(page)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.get_by_label("Price per unit hour").fill("-1")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Enter a price of 0 or more")).to_be_visible()
    page.get_by_label("Price per unit hour").fill("2")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text(f"{a100.name} saved.")).to_be_visible()
    a100.refresh_from_db()
    assert (a100.borrowing_limit, a100.price_per_unit_hour) == (5, 2)
