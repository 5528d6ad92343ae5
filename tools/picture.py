"""The README's pictures, from a running demo:

python tools/picture.py home      # of `run.py demo --fresh`: the home of the team vision
python tools/picture.py morning   # of `run.py demo --scenario morning`
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect, sync_playwright

ROOT = Path(__file__).parent.parent
PICTURES = ROOT / "docs" / "img"
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
MARGIN = 12
EDGES = """() => {
  const [quota, queued] = ["state_holdings", "state_waiting"].map((id) => document.getElementById(id));
  const [top, end] = [quota.getBoundingClientRect(), queued.getBoundingClientRect()];
  return [top.x, top.y + scrollY, top.width, end.bottom + scrollY];
}"""


def main(which: str) -> None:
    state = ROOT / ".run" / ("demo.json" if which == "home" else "demo-morning.json")
    if not state.exists():
        sys.exit(f"The demo of this picture is not running: {__doc__}")
    demo = json.loads(state.read_text())
    accounts = {account["name"]: account for account in demo["accounts"]}
    with sync_playwright() as playwright:
        program = next(filter(None, map(shutil.which, BROWSERS)), None)
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        viewport = {"width": 1280, "height": 900}
        page = browser.new_page(base_url=demo["portal_url"], viewport=viewport, color_scheme="light")
        _sign_in(page, accounts["Erin" if which == "home" else "Bob"])
        (_take_home if which == "home" else _take_morning)(page)
        browser.close()


def _sign_in(page: Page, account: dict[str, Any]) -> None:
    page.goto("/login")
    page.fill("[name=username]", account["email"])
    page.fill("[name=password]", account["password"])
    page.press("[name=password]", "Enter")
    page.wait_for_url("**/teams/*")


# ---- picture of a team's home page -------------------------------------------------------------------------------


def _take_home(page: Page) -> None:
    expect(page.locator("#state_waiting .pos, [sse-swap=state_waiting] .pos")).to_have_count(2)
    page.screenshot(path=PICTURES / "home-light.png", full_page=True)


# ---- picture of the scenario `morning` ---------------------------------------------------------------------------


def _take_morning(page: Page) -> None:
    """Takes the pictures of the team's quota and of the queue, when the suggested actions are shown."""
    queued = page.locator("#state_waiting")
    expect(queued.locator(".pos")).to_have_count(4)
    expect(queued.get_by_role("link", name="Switch to")).to_have_count(4)
    # One read: a part of a live page may be replaced between two reads.
    x, top, width, bottom = page.evaluate(EDGES)
    clip = {"x": x - MARGIN, "y": top - MARGIN, "width": width + 2 * MARGIN, "height": bottom - top + 2 * MARGIN}
    page.screenshot(path=PICTURES / "morning-light.png", full_page=True, clip=clip)


if __name__ == "__main__":
    if sys.argv[1:] not in (["home"], ["morning"]):
        sys.exit(__doc__)
    main(sys.argv[1])
