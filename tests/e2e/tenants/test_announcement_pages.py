"""An announcement in a real browser: published, read on every page, acknowledged by one person, withdrawn for all."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from accounts.core.actor import Actor
from accounts.models import User
from tenants.announcements import actions
from tenants.models import Announcement, Tenant
from tests.e2e.accessibility import look_at
from tests.tenants.announcements.test_announcements import announced

pytestmark = pytest.mark.browser


def test_it_is_published_acknowledged_and_withdrawn(
    team_a: Tenant, olga: User, alice: User, bob: User, open_page: Callable[..., Page]
) -> None:
    page = open_page("/operators/announcements", as_user=olga)
    page.get_by_label("Title", exact=True).fill("New switches tonight")
    page.get_by_label("Text", exact=True).fill("Save your work before 22:00.")
    page.get_by_label("Severity").select_option("warning")
    page.get_by_label("Audience").select_option("teams")
    page.get_by_label("Teams", exact=True).select_option("team-a")
    page.get_by_label("Ask for acknowledgement").check()
    look_at(page)
    page.get_by_role("button", name="Publish").click()
    expect(page.get_by_role("heading", name="New switches tonight")).to_be_visible()
    expect(page.get_by_text("Acknowledged by 0 of 2 people in the audience.")).to_be_visible()
    look_at(page)
    row = Announcement.objects.get()

    theirs = open_page("/catalog", as_user=bob)
    shown = theirs.get_by_role("region", name="Announcement")
    expect(shown).to_contain_text("Warning")
    expect(shown).to_contain_text("Save your work before 22:00.")
    look_at(theirs)
    shown.get_by_role("button", name="Acknowledge").click()
    expect(theirs.get_by_role("region", name="Announcement")).to_have_count(0)

    another = open_page("/catalog", as_user=alice)
    expect(another.get_by_role("region", name="Announcement")).to_have_count(1)
    operators = open_page(f"/announcements/{row.pk}", as_user=olga)
    expect(operators.get_by_text("Acknowledged by 1 of 2 people in the audience.")).to_be_visible()
    operators.get_by_role("button", name="Withdraw").click()
    expect(operators.get_by_text("Announcement withdrawn.")).to_be_visible()
    another = open_page("/catalog", as_user=alice)
    expect(another.get_by_role("heading", level=1)).to_be_visible()
    expect(another.get_by_role("region", name="Announcement")).to_have_count(0)


def test_open_pages_follow_without_a_reload(
    team_a: Tenant, olga: User, bob: User, open_page: Callable[..., Page]
) -> None:
    """By the stream of the page at once, and by its own question where it has none."""
    page = open_page("/teams/team-a", as_user=bob)
    shown = page.get_by_role("region", name="Announcement")
    expect(shown).to_have_count(0)
    tell = "data => window.stream.dispatchEvent(new MessageEvent('state_announcements', { data }))"
    row = announced(olga, title="New switches tonight", audience="teams", teams=["team-a"])
    page.evaluate(tell, "something else")
    expect(shown).to_contain_text("New switches tonight")
    look_at(page)
    page.evaluate(tell, page.locator("#announcements [name=announced]").input_value())
    shown.get_by_role("button", name="Acknowledge").click()
    page = open_page("/teams/team-a", as_user=bob)
    expect(page.get_by_role("region", name="Announcement")).to_have_count(0)
    row = announced(olga, title="Done", audience="teams", teams=["team-a"])
    page.evaluate(tell, "-more")
    expect(page.get_by_role("region", name="Announcement")).to_contain_text("Done")
    actions.withdraw_announcement(row.pk, by=Actor(user=olga, via="page"))
    page.evaluate(tell, "-")
    expect(page.get_by_role("region", name="Announcement")).to_have_count(0)

    without = open_page("/catalog", as_user=bob)
    expect(without.get_by_role("region", name="Announcement")).to_have_count(0)
    announced(olga, title="Once more", audience="teams", teams=["team-a"])
    without.evaluate("htmx.trigger('#announcements', 'announced')")  # what the minute does
    expect(without.get_by_role("region", name="Announcement")).to_contain_text("Once more")
