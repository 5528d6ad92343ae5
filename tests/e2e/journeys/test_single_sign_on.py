"""Signing in by an issuer in a browser, whose rules about forms, cookies and other sites no test client has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from portal.core.single_sign_on import GroupMapping, SingleSignOn
from tenants.models import Tenant
from tests.support.identity.issuer import CLIENT, SECRET
from tests.support.identity.provider import Person
from tests.support.identity.provider_process import PASSWORD, providing

pytestmark = pytest.mark.browser
ADA = "ada@example.org"


@pytest.mark.parametrize("script", [True, False])
def test_there_and_back(
    open_page: Callable[..., Page],
    live_server: LiveServer,
    settings: Any,
    team_a: Tenant,
    tmp_path: Path,
    script: bool,
) -> None:
    """The issuer's page is reached by a form of ours, whatever `form-action` says, and leads to the team's page."""
    settings.PORTAL_URL = live_server.url
    people: list[Person] = [{"email": ADA, "password": PASSWORD, "verified": True}]
    with providing(tmp_path, back=[f"{live_server.url}/login/oidc/back"], people=people) as provider:
        provider.put_in(ADA, "vision")
        groups = {"vision": GroupMapping({"team-a": "member"}, frozenset())}
        settings.OIDC = SingleSignOn(provider.url, CLIENT, SECRET, "Example", "groups", groups, http_on_loopback=True)

        page = open_page("/login?next=/teams/team-a", java_script_enabled=script)
        page.get_by_role("button", name="Sign in with Example").click()
        page.wait_for_url(f"{provider.url}/**")
        page.locator("input[name=login]").fill(ADA)
        page.locator("input[name=password]").fill(PASSWORD)
        page.locator("input[name=password]").press("Enter")
        page.locator("button[name=action][value=grant]").click()
        page.wait_for_url(f"{live_server.url}/teams/team-a")

    expect(page.get_by_role("heading", level=1)).to_contain_text("Team A")
