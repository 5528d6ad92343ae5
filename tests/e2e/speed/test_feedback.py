"""A click is answered at once, also while the portal has not answered yet: nothing here depends on time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Route, expect

from tests.support.browser.busy_team import BusyTeam
from tests.support.waiting import wait_until

pytestmark = pytest.mark.browser
# Notes what is said before the next page: while it is awaited, Playwright looks at nothing.
WATCH = """() => new MutationObserver((records) => { for (const { target, attributeName } of records) {
  const bar = getComputedStyle(document.documentElement, "::before");
  if (attributeName === "data-busy" && "busy" in target.dataset) sessionStorage.bar = `${bar.position} ${bar.height}`;
  if (target.ariaBusy === "true") sessionStorage.control = target.matches("form") ? "form" : target.textContent.trim();
} }).observe(document, { subtree: true, attributeFilter: ["data-busy", "aria-busy"] })"""
SAID = "() => { const { bar, control } = sessionStorage; sessionStorage.clear(); return [bar, control]; }"
BAR = "fixed 3px"


def held(page: Page, address: str) -> list[Route]:
    """Requests to this address get no answer until they are continued."""
    found: list[Route] = []
    page.route(address, lambda route: found.append(route))
    return found


def first_of(page: Page, found: list[Route]) -> Route:
    """A page may say that it waits before the test has been told of the request."""
    # Playwright calls handlers only during a call of its own.
    return wait_until(lambda: page.evaluate("true") and found, what="a held request")[0]


def expect_busy(page: Page, *, is_busy: bool) -> None:
    html = page.locator("html")
    (expect(html).to_have_attribute if is_busy else expect(html).not_to_have_attribute)("data-busy", "")


def test_a_link_and_a_filter_say_that_they_were_used(open_page: Callable[..., Page], small: BusyTeam) -> None:
    page = open_page("/teams/vision/workloads", as_user=small.alice)
    page.evaluate(WATCH)
    page.get_by_role("link", name="Next").click()
    page.wait_for_url("**cursor=*")
    assert page.evaluate(SAID) == [BAR, "Next"]
    expect_busy(page, is_busy=False)
    page.evaluate(WATCH)
    page.get_by_label("State").select_option("ended")
    page.wait_for_url("**state=ended*")
    assert page.evaluate(SAID) == [BAR, "form"]
    expect_busy(page, is_busy=False)


def test_a_form_says_that_it_was_sent(open_page: Callable[..., Page], small: BusyTeam) -> None:
    page = open_page("/notices", as_user=small.alice)
    page.evaluate(WATCH)
    page.get_by_role("button", name="Mark all as read").click()
    expect(page.get_by_role("button", name="Mark all as read")).to_have_count(0)
    assert page.evaluate(SAID) == [BAR, "Mark all as read"]


def test_a_form_that_asks_about_its_session_first_says_so(open_page: Callable[..., Page], small: BusyTeam) -> None:
    page = open_page("/teams/vision/launch", as_user=small.alice)
    waiting = held(page, "**/session")
    launch = page.get_by_role("button", name="Launch", exact=True)
    page.locator("#launch-form").evaluate("form => { form.noValidate = true; }")
    launch.click()
    expect(launch).to_have_attribute("aria-busy", "true")
    expect_busy(page, is_busy=True)
    first_of(page, waiting).abort()
    expect(page.get_by_role("alert")).to_contain_text("The portal did not answer")
    expect(launch).not_to_have_attribute("aria-busy", "true")
    expect_busy(page, is_busy=False)


def test_a_part_that_was_asked_for_is_awaited_and_one_that_was_not_is_silent(
    open_page: Callable[..., Page], small: BusyTeam
) -> None:
    page = open_page("/inbox", as_user=small.dana)
    waiting = held(page, "**/inbox?part=set*")
    page.get_by_role("checkbox").first.check()
    expect_busy(page, is_busy=True)
    first_of(page, waiting).continue_()
    expect_busy(page, is_busy=False)
    page.evaluate(WATCH)
    with page.expect_response("**/announcements/now*"):
        page.evaluate("htmx.trigger('#announcements', 'announced')")
    assert page.evaluate(SAID) == [None, None]


def test_what_stays_on_the_page_is_not_awaited(open_page: Callable[..., Page], small: BusyTeam) -> None:
    page = open_page("/teams/vision/workloads/lab-0", as_user=small.alice)
    page.evaluate(WATCH)
    page.get_by_role("link", name="Delete…").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert page.evaluate(SAID) == [None, None]
