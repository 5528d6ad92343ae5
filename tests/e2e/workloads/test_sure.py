"""Stop says what is lost before it stops: by mouse, by keyboard, and without script."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from accounts.models import User
from catalog.models import GpuClass
from tenants.models import Membership, Namespace, Tenant
from tests.e2e.accessibility import look_at
from tests.support.rows import running
from workloads.models import Run

pytestmark = pytest.mark.browser
PAGE = "/teams/team-a/workloads/one"
LOST = "It has no volume: files are deleted when it stops, and memory is lost."


@pytest.fixture
def notebook(namespace_a: Namespace, a100: GpuClass, alice: User) -> None:
    running.make_ready(running.workload(namespace_a, a100, by=alice))
    running.known(namespace_a.cluster_id)


def is_stopping() -> bool:
    return Run.objects.get().stop_requested_at is not None


def test_stop_asks_by_keyboard(notebook: None, open_page: Callable[..., Page], alice: User) -> None:
    page = open_page(PAGE, as_user=alice)
    opener = page.get_by_role("link", name="Stop…")
    opener.press("Enter")
    dialog = page.get_by_role("dialog", name="Stop this workload")
    expect(dialog).to_contain_text(LOST)
    expect(dialog.get_by_role("link", name="Cancel")).to_be_focused()
    look_at(page)
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(opener).to_be_focused()
    assert not is_stopping()
    opener.press("Enter")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Stopping").first).to_be_visible()
    assert is_stopping()


def test_stop_asks_without_script(notebook: None, open_page: Callable[..., Page], alice: User) -> None:
    page = open_page(PAGE, as_user=alice, java_script_enabled=False)
    expect(page.get_by_text(LOST).first).to_be_hidden()
    page.get_by_role("link", name="Stop…").click()
    expect(page.get_by_text(LOST).first).to_be_visible()
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(page.get_by_text("Stopping").first).to_be_visible()


def test_members_are_told_what_a_removal_ends(
    team_a: Tenant, namespace_a: Namespace, open_page: Callable[..., Page], alice: User, bob: User
) -> None:
    page = open_page("/teams/team-a/members", as_user=alice)
    page.get_by_role("link", name="Remove… Bob").click()
    dialog = page.get_by_role("dialog", name="Remove this member")
    expect(dialog).to_contain_text("Bob loses access to Team A at once.")
    look_at(page)
    dialog.get_by_role("link", name="Cancel").click()
    assert Membership.objects.filter(user=bob).exists()
    page.get_by_role("link", name="Remove… Bob").click()
    dialog.get_by_role("button", name="Remove").click()
    expect(page.get_by_text("Member removed.")).to_be_visible()
    assert not Membership.objects.filter(user=bob).exists()
