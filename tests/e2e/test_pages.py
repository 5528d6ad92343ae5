"""Every page in both themes, on a desk and on a phone: accessible, nothing blocked by the policy, nothing cut off."""

import re
from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import ConsoleMessage, Page, expect

from accounts.models import User

pytestmark = pytest.mark.browser
SIZES = [("light", 1280), ("light", 390), ("dark", 1280), ("dark", 390)]


def problems_of(page: Page) -> list[str]:
    """What axe finds, as readable lines: which rule, where."""
    found = Axe().run(page).response["violations"]
    return [f"{one['id']} ({one['impact']}): {node['html'][:120]}" for one in found for node in one["nodes"]]


def look_at(page: Page) -> None:
    """The page is accessible, fits its window, and nothing of it was blocked."""
    messages: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            messages.append(message.text)

    page.on("console", note)
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.reload(wait_until="load")
    assert problems_of(page) == []
    root = "document.documentElement"
    assert page.evaluate(f"{root}.scrollWidth - {root}.clientWidth") == 0
    assert messages == []


@pytest.mark.parametrize(("theme", "width"), SIZES)
def test_styleguide(open_page: Callable[..., Page], olga: User, theme: str, width: int) -> None:
    page = open_page("/styleguide", as_user=olga, theme=theme, width=width)
    for details in page.locator("details:not(.menu)").all():
        details.locator("summary").click()
    look_at(page)


@pytest.mark.parametrize(("theme", "width"), SIZES)
def test_sign_in(open_page: Callable[..., Page], theme: str, width: int) -> None:
    look_at(open_page("/login", theme=theme, width=width))


@pytest.mark.parametrize(("theme", "width"), SIZES)
def test_tokens(open_page: Callable[..., Page], alice: User, theme: str, width: int) -> None:
    look_at(open_page("/tokens", as_user=alice, theme=theme, width=width))


def test_keys_open_help_and_escape_closes_it(open_page: Callable[..., Page], olga: User) -> None:
    page = open_page("/styleguide", as_user=olga)
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


def test_a_menu_closes_by_escape_and_gives_the_focus_back(open_page: Callable[..., Page], olga: User) -> None:
    page = open_page("/styleguide", as_user=olga)
    summary = page.locator("details.menu summary", has_text="Olga")
    summary.click()
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Sign out")).to_be_hidden()
    expect(summary).to_be_focused()


def test_destroying_waits_for_the_name(open_page: Callable[..., Page], olga: User) -> None:
    page = open_page("/styleguide", as_user=olga)
    page.get_by_role("link", name="Delete…").click()
    dialog = page.get_by_role("dialog", name="Delete retina-seg")
    button = dialog.get_by_role("button", name="Delete")
    expect(button).to_be_disabled()
    dialog.get_by_label("Type retina-seg to confirm").fill("retina-seg")
    expect(button).to_be_enabled()


def test_the_system_theme_is_there_before_the_first_paint(open_page: Callable[..., Page]) -> None:
    page = open_page("/login", color_scheme="dark")
    expect(page.locator("html")).to_have_attribute("data-bs-theme", "dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(14, 18, 24)"


def test_times_are_in_the_persons_zone(open_page: Callable[..., Page], olga: User) -> None:
    page = open_page("/styleguide", as_user=olga, timezone_id="Asia/Tokyo")
    expect(page.locator("time[data-when=clock]").first).to_have_attribute("title", re.compile(r"GMT\+9"))


def test_pages_work_without_script(open_page: Callable[..., Page], olga: User) -> None:
    page = open_page("/styleguide", as_user=olga, java_script_enabled=False)
    page.get_by_role("link", name="Delete…").click()
    expect(page.get_by_role("dialog", name="Delete retina-seg")).to_be_visible()
    page.locator("details.menu summary", has_text="Olga").click()
    page.locator(".menu-list").get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-bs-theme", "dark")


def test_a_token_is_made_and_revoked_without_script(open_page: Callable[..., Page], alice: User) -> None:
    page = open_page("/tokens", as_user=alice, java_script_enabled=False)
    page.get_by_label("Name").fill("nightly CI")
    page.get_by_role("button", name="Create token").click()
    expect(page.get_by_role("heading", name="Your new token, shown this once")).to_be_visible()
    page.get_by_role("button", name="Revoke nightly CI").click()
    expect(page.get_by_text("was revoked")).to_be_visible()
