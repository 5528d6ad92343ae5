"""The page of an import in a browser: a file is chosen once, previewed and imported."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from accounts.models import User
from cluster.models import Cluster
from tenants.models import Tenant
from tests.e2e.accessibility import look_at

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
FILE = "kind,team,name,email,role,class,units,until\nteam,vision,Vision,alice@example.org,,,,\nteam,kube,No,,,,,\n"


def test_a_file_is_previewed_and_imported(
    open_page: Callable[..., Page], cluster: Cluster, alice: User, olga: User
) -> None:
    page = open_page("/operators/teams", as_user=olga)
    page.get_by_role("link", name="Take over teams").click()
    expect(page.get_by_role("heading", name="Take over teams from another system")).to_be_visible()
    look_at(page)
    page.get_by_label("File").set_input_files({"name": "teams.csv", "mimeType": "text/csv", "buffer": FILE.encode()})
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("row", name="team vision")).to_contain_text("will create")
    expect(page.get_by_role("row", name="team kube")).to_contain_text("refused")
    look_at(page)
    assert not Tenant.objects.exists()
    page.get_by_role("button", name="Import as shown").click()
    expect(page.get_by_role("row", name="team vision")).to_contain_text("created")
    expect(page.get_by_role("button", name="Import as shown")).to_have_count(0)
    assert [team.slug for team in Tenant.objects.all()] == ["vision"]
