"""Checks a page with axe, at several widths and with the keyboard."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import ConsoleMessage, Page

OPEN_ALL = "document.querySelectorAll('main details').forEach((one) => { one.open = true; })"

# Each theme and each width once: colours are of the theme, and what fits is of the width. axe is most of what it costs.
SIZES = [("light", 1280), ("dark", 390)]


# Rules whose result depends on the theme or the width; all others see the same elements as before.
OF_THEME_AND_WIDTH = ("color-contrast", "scrollable-region-focusable", "link-in-text-block")


def problems_of(page: Page, *rules: str) -> list[str]:
    """Returns axe's findings as readable lines: which rule, where. `rules`: only these; default: all."""
    axe = Axe()
    if not page.evaluate("'axe' in window"):
        page.evaluate(axe.axe_script)
    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    # Only what is read below: the whole result is a megabyte for a long page.
    found = page.evaluate(
        """async (options) => (await axe.run(options)).violations.map(
             (one) => [one.id, one.impact, one.nodes.map((node) => node.html.slice(0, 120))])""",
        options,
    )
    return [f"{rule} ({impact}): {html}" for rule, impact, nodes in found for html in nodes]


def look_at(page: Page, *, prepare: str = OPEN_ALL) -> None:
    """In both themes and widths the page is accessible, fits its window, and nothing of it was blocked.

    The other theme is set in the page: all colours depend on one attribute, as static/portal/theme.js shows.
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
    now = page.locator("html").get_attribute("data-bs-theme")
    first, second = sorted(SIZES, key=lambda size: size[0] != now)
    for (theme, width), rules in ((first, ()), (second, OF_THEME_AND_WIDTH)):
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate(f"{root}.dataset.bsTheme = '{theme}'")
        page.evaluate(prepare)
        problems = problems_of(page, *rules)
        assert not problems, f"{page.url}, {theme}, {width} pixels: {problems}"
        assert page.evaluate(f"{root}.scrollWidth - {root}.clientWidth") == 0
    page.evaluate(f"{root}.dataset.bsTheme = '{now}'")
    assert messages == []
