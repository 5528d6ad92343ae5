"""Checks a page with axe, at several widths and with the keyboard."""

from __future__ import annotations

from urllib.parse import urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import ConsoleMessage, Page, expect

OPEN_ALL = "document.querySelectorAll('main details').forEach((one) => { one.open = true; })"

# Each theme and each width once: colours are of the theme, and what fits is of the width. axe is most of what it costs.
SIZES = [("light", 1280), ("dark", 390)]


def problems_of(page: Page) -> list[str]:
    """Returns axe's findings as readable lines: which rule, where."""
    found = Axe().run(page).response["violations"]
    return [f"{one['id']} ({one['impact']}): {node['html'][:120]}" for one in found for node in one["nodes"]]


def look_at(page: Page, *, prepare: str = OPEN_ALL) -> None:
    """In both themes and widths the page is accessible, fits its window, and nothing of it was blocked.

    As it is open now, and loaded anew for the other theme: to load it twice found nothing more.
    """
    messages: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            messages.append(message.text)

    # After a click the next page may have begun to arrive: half of it has no heading and no main part yet.
    page.wait_for_load_state("load")
    page.on("console", note)
    page.on("pageerror", lambda error: messages.append(str(error)))
    root = "document.documentElement"
    # For the whole site, as the page's own: a cookie for a longer path would be sent beside it, and lose.
    site = urlsplit(page.url)._replace(path="/", query="", fragment="").geturl()
    now = page.locator("html").get_attribute("data-bs-theme")
    for theme, width in sorted(SIZES, key=lambda size: size[0] != now):
        page.set_viewport_size({"width": width, "height": 900})
        if theme != now:
            page.context.add_cookies([{"name": "theme", "value": theme, "url": site}])
            response = page.reload(wait_until="load")
            assert response is not None
            assert response.status == 200
            expect(page.locator("html")).to_have_attribute("data-bs-theme", theme)
        page.evaluate(prepare)
        problems = problems_of(page)
        assert not problems, f"{page.url}, {theme}, {width} pixels: {problems}"
        assert page.evaluate(f"{root}.scrollWidth - {root}.clientWidth") == 0
    assert messages == []
