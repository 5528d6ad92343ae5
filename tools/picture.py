"""The README's picture of the morning, from a running `run.py demo --scenario morning`: python tools/picture.py

A person's browser, signed in through the form: what a team's owner sees while four of its notebooks wait.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

ROOT = Path(__file__).parent.parent
DEMO = ROOT / ".run" / "demo-morning.json"
PICTURE = ROOT / "docs" / "img" / "morning-light.png"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
MARGIN = 12
EDGES = """() => {
  const [holds, waits] = ["state_holdings", "state_waiting"].map((id) => document.getElementById(id));
  const [top, end] = [holds.getBoundingClientRect(), waits.getBoundingClientRect()];
  return [top.x, top.y + scrollY, top.width, end.bottom + scrollY];
}"""


def main() -> None:
    if not DEMO.exists():
        sys.exit("The morning is not running. Start it in another terminal: python3 run.py demo --scenario morning")
    demo = json.loads(DEMO.read_text())
    [bob] = [account for account in demo["accounts"] if account["name"] == "Bob"]
    with sync_playwright() as playwright:
        program = next(filter(None, map(shutil.which, BROWSERS)), None)
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        viewport = {"width": 1280, "height": 900}
        page = browser.new_page(base_url=demo["portal_url"], viewport=viewport, color_scheme="light")
        page.goto("/login")
        page.fill("[name=username]", bob["email"])
        page.fill("[name=password]", bob["password"])
        page.press("[name=password]", "Enter")
        page.wait_for_url("**/teams/lab")
        take(page)
        browser.close()


def take(page: Page) -> None:
    """What the team holds and what waits, once the help is there."""
    waits = page.locator("#state_waiting")
    expect(waits.locator(".pos")).to_have_count(4)
    expect(waits.get_by_role("link", name="Take a share")).to_have_count(4)
    # Asked for at once: a part of a live page may be put in anew between two questions.
    x, top, width, bottom = page.evaluate(EDGES)
    clip = {"x": x - MARGIN, "y": top - MARGIN, "width": width + 2 * MARGIN, "height": bottom - top + 2 * MARGIN}
    page.screenshot(path=PICTURE, full_page=True, clip=clip)


if __name__ == "__main__":
    main()
