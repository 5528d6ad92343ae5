"""A team's own images as a browser shows them: to an owner, who keeps credentials, and to staff, who allow prefixes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from accounts.core.actor import Actor
from accounts.models import User
from tenants.class_access.image_prefixes import actions as image_prefixe_actions
from tenants.models import Tenant
from tests.e2e.accessibility import look_at
from workloads.credentials.registries import actions as registry_actions
from workloads.credentials.registries.actions import RegistryLogin
from workloads.models import RegistryCredential

pytestmark = pytest.mark.browser
HOST = "registry.example.org"


def test_an_owner_keeps_credentials_and_staff_allow_prefixes(
    open_page: Callable[..., Page], team_a: Tenant, alice: User, olga: User
) -> None:
    image_prefixe_actions.allow_prefix("team-a", f"{HOST}/vision/", by=Actor(olga, via="page"))
    registry_actions.put_login("team-a", HOST, RegistryLogin("robot", "word"), by=Actor(alice, via="page"))
    page = open_page("/teams/team-a/images", as_user=alice)
    look_at(page)
    page.get_by_label("User name").fill("other")
    page.get_by_label("Password or token").fill("other word")
    page.get_by_label("Password or token").press("Enter")
    expect(page.get_by_text(f"The credentials for {HOST} were replaced.")).to_be_visible()
    assert registry_actions.unseal_login(bytes(RegistryCredential.objects.get().sealed)) == RegistryLogin(
        "other", "other word"
    )

    staff = open_page("/teams/team-a/images", as_user=olga, java_script_enabled=False)
    staff.get_by_role("textbox", name="Prefix").fill("ghcr.io/vision")
    staff.get_by_role("button", name="Allow", exact=True).click()
    expect(staff.get_by_text("ghcr.io/vision/ is allowed.")).to_be_visible()
