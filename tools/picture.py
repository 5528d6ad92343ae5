"""The README's pictures, from a running demo:

python tools/picture.py home      # of `run.py demo --fresh`: fills the home of team A, then takes it
python tools/picture.py morning   # of `run.py demo --scenario morning`
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import httpx
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
UNTIL = "2027-03-31T23:59:59Z"
A100, SLICE, H100 = "a100-sxm4-80gb", "a100-sxm4-80gb-1g-10gb", "h100-80gb-hbm3"
QUOTA = {A100: 4, SLICE: 3, H100: 2, "storage": 100}
RUNNING = (
    {
        "name": "nightly",
        "kind": "job",
        "gpu_class": A100,
        "units": 1,
        "image": "PyTorch",
        "command": ["python", "train.py"],
    },
    {"name": "segmentation", "kind": "notebook", "gpu_class": A100, "units": 2, "image": "JupyterLab"},
    {"name": "lecture-3", "kind": "notebook", "gpu_class": SLICE, "units": 1, "image": "JupyterLab"},
    {"name": "try-h100", "kind": "notebook", "gpu_class": H100, "units": 1, "image": "JupyterLab"},
)
QUEUED = {
    "name": "full-training",
    "kind": "job",
    "gpu_class": A100,
    "units": 4,
    "image": "PyTorch",
    "command": ["train"],
}
WITHIN_S = 120.0


def main(which: str) -> None:
    state = ROOT / ".run" / ("demo.json" if which == "home" else "demo-morning.json")
    if not state.exists():
        sys.exit(f"The demo of this picture is not running: {__doc__}")
    demo = json.loads(state.read_text())
    accounts = {account["name"]: account for account in demo["accounts"]}
    if which == "home":
        _fill_home(demo["portal_url"], accounts)
    with sync_playwright() as playwright:
        program = next(filter(None, map(shutil.which, BROWSERS)), None)
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        viewport = {"width": 1280, "height": 900}
        page = browser.new_page(base_url=demo["portal_url"], viewport=viewport, color_scheme="light")
        _sign_in(page, accounts["Alice" if which == "home" else "Bob"])
        (_take_home if which == "home" else _take_morning)(page)
        browser.close()


def _sign_in(page: Page, account: dict[str, Any]) -> None:
    page.goto("/login")
    page.fill("[name=username]", account["email"])
    page.fill("[name=password]", account["password"])
    page.press("[name=password]", "Enter")
    page.wait_for_url("**/teams/*")


# ---- picture of a team's home page -------------------------------------------------------------------------------


def _fill_home(portal_url: str, accounts: dict[str, dict[str, Any]]) -> None:
    """Creates by the API: quota of four classes, four running workloads and one that waits for quota."""
    alice, dana = (
        httpx.Client(base_url=f"{portal_url}/api/v1", headers={"Authorization": f"Bearer {accounts[name]['token']}"})
        for name in ("Alice", "Dana")
    )
    lines = [{"gpu_class": name, "units": units, "ends_at": UNTIL} for name, units in QUOTA.items()]
    body = {"team": "team-a", "justification": "Segmentation and its lectures.", "lines": lines}
    filed = _json(alice.post("/requests", json=body))
    decided = [{"id": line["id"], "approve": True} for line in filed["lines"]]
    _json(dana.post(f"/requests/{filed['id']}/decide", json={"lines": decided}))
    for workload in RUNNING:
        name = workload["name"]
        _json(alice.post("/workloads?team=team-a", json=workload))
        _wait(lambda name=name: _phase(alice, name) in ("running", "ready"), f"{name} runs")
    _json(alice.post("/workloads?team=team-a", json=QUEUED))
    _wait(lambda: _phase(alice, str(QUEUED["name"])) == "queued", "the last one is queued")


def _phase(client: httpx.Client, name: str) -> str:
    return str(_json(client.get(f"/workloads/{name}?team=team-a"))["status"]["phase"])


def _json(answer: httpx.Response) -> Any:
    if answer.is_error:
        sys.exit(f"{answer.request.method} {answer.request.url}: {answer.status_code} {answer.text}")
    return answer.json()


def _wait(is_so: Any, what: str) -> None:
    until = time.monotonic() + WITHIN_S
    while not is_so():
        if time.monotonic() > until:
            sys.exit(f"Not within {WITHIN_S:g} s: {what}")
        time.sleep(0.5)


def _take_home(page: Page) -> None:
    expect(page.locator("#state_waiting .pos, [sse-swap=state_waiting] .pos")).to_have_count(1)
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
