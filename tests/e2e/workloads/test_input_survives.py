"""What somebody typed outlives a lost connection and an ended session, and is sent after a sign-in in another tab."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.sessions.models import Session
from playwright.sync_api import Page, expect

from accounts.models import User
from catalog.models import GpuClass, Image
from tenants.models import Namespace, Tenant
from tests.support.rows import make, mirrored
from workloads.models import Workload

pytestmark = pytest.mark.browser
KEPT = "What you entered is still here"


@pytest.fixture
def form(open_page: Callable[..., Page], team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User) -> Page:
    mirrored.hardware_seen(a100.cluster)
    make.grant(team_a, a100, units=4)
    Image.objects.create(name="minimal", reference="quay.io/jupyter/minimal-notebook:1", kind="notebook")
    page = open_page("/teams/team-a/launch?kind=notebook", as_user=alice)
    page.get_by_label("Name", exact=True).fill("typed-by-hand")
    return page


def is_kept(page: Page) -> None:
    expect(page.get_by_label("Name", exact=True)).to_have_value("typed-by-hand")
    expect(page.locator("#choices")).to_be_visible()
    expect(page.get_by_role("button", name="Launch", exact=True)).to_be_enabled()


def test_offline(form: Page) -> None:
    form.context.set_offline(True)
    form.get_by_label("Units").fill("2")
    expect(form.get_by_text(KEPT)).to_be_visible()
    expect(form.get_by_text("Not computed: this summary may not fit your input.")).to_be_visible()
    is_kept(form)
    form.get_by_role("button", name="Launch", exact=True).click()
    expect(form.get_by_text("Check your connection")).to_be_visible()
    is_kept(form)
    form.context.set_offline(False)
    form.get_by_label("Units").fill("1")
    expect(form.get_by_text("Not computed")).to_be_hidden()
    expect(form.get_by_text(KEPT)).to_have_count(0)
    form.get_by_role("button", name="Launch", exact=True).click()
    form.wait_for_url("**/workloads/typed-by-hand")


def test_a_session_that_ended(form: Page, alice: User) -> None:
    """The part of the form that htmx fetches again was replaced by nothing: the sign-in page has no such part."""
    Session.objects.all().delete()
    form.get_by_label("Units").fill("2")
    expect(form.get_by_text("Your session has ended.")).to_be_visible()
    expect(form.get_by_text("Not computed")).to_be_visible()
    is_kept(form)
    form.get_by_role("button", name="Launch", exact=True).click()
    expect(form.get_by_text("Your session has ended.")).to_be_visible()
    is_kept(form)
    assert not Workload.objects.exists()
    with form.expect_popup() as popup:
        form.get_by_role("link", name="Sign in").click()
    other = popup.value
    other.get_by_label("Email address").fill(alice.email)
    other.get_by_label("Password").fill(make.PASSWORD)
    other.get_by_role("button", name="Sign in", exact=True).click()
    other.wait_for_url("**/teams/team-a")
    other.close()
    form.bring_to_front()
    form.get_by_role("button", name="Launch", exact=True).click()
    form.wait_for_url("**/workloads/typed-by-hand")
    assert Workload.objects.get().units == 2


def test_another_persons_session_sends_nothing(form: Page, alice: User, bob: User) -> None:
    """Whoever signed in meanwhile would launch in somebody else's name."""
    other = form.context.new_page()
    form.context.clear_cookies()
    other.goto("/login")
    other.get_by_label("Email address").fill(bob.email)
    other.get_by_label("Password").fill(make.PASSWORD)
    other.get_by_role("button", name="Sign in", exact=True).click()
    other.wait_for_url("**/teams/team-a")
    form.bring_to_front()
    form.get_by_role("button", name="Launch", exact=True).click()
    expect(form.get_by_text("Your session has ended.")).to_be_visible()
    is_kept(form)
    assert not Workload.objects.exists()
