"""An administrator gives a role and a class, suspends and restores: accessible everywhere, and without script too."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from accounts.models import Role, User
from catalog.models import GpuClass
from tenants.models import Tenant
from tests.e2e.accessibility import look_at
from tests.support.rows import make

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("script", [True, False])
def test_a_person_comes_and_goes(
    open_page: Callable[..., Page], team_a: Tenant, a100: GpuClass, alice: User, dana: User, script: bool
) -> None:
    ada = make.user("Ada", roles=list(Role))
    page = open_page("/catalog", as_user=ada, java_script_enabled=script)
    page.get_by_role("link", name="People").click()
    if script:
        look_at(page)
    page.get_by_label("Name or address").fill("alice")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_role("link", name="Dana")).to_have_count(0)
    page.get_by_role("link", name="Alice").click()
    page.get_by_label("approver").check()
    page.get_by_role("button", name="Set roles").click()
    expect(page.get_by_text("Roles of Alice are now: approver.")).to_be_visible()
    page.get_by_label("Class", exact=True).select_option(a100.slug)
    page.get_by_role("button", name="Add class").click()
    expect(page.get_by_text(f"Alice can now decide requests for {a100.name}")).to_be_visible()
    page.get_by_role("link", name="Suspend…").click()
    dialog = page.get_by_role("dialog", name="Suspend Alice")
    expect(dialog.get_by_text("team-a has no other owner")).to_be_visible()
    dialog.get_by_label("Reason").fill("Left the institute.")
    dialog.get_by_label("Type alice@example.org to confirm").fill(alice.email)
    dialog.get_by_role("button", name="Suspend account").click()
    expect(page.get_by_text("Alice is suspended and signed out everywhere")).to_be_visible()
    if script:
        look_at(page)
    page.get_by_role("button", name="Restore account").click()
    expect(page.get_by_text("Alice can sign in again")).to_be_visible()
    page.get_by_role("link", name=f"Remove… {a100.name}").click()
    dialog = page.get_by_role("dialog", name="Remove the right to decide")
    dialog.get_by_role("button", name="Remove").click()
    expect(page.get_by_text("can no longer decide requests for")).to_be_visible()
    if script:
        look_at(page)
