"""The morning when 36 of 32 GPUs are asked for: the demo's own scenario on a control plane with its hardware.

Four notebooks wait and are told why. Some work moves to smaller units, by the pages' own words, and the queue is empty.
What the pages say is compared with what Kueue says to an administrator.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect

from devcluster.client.kube import Api
from devcluster.demo import environment
from devcluster.demo.http_client import BrowserSession
from devcluster.demo.observer import KUEUE
from devcluster.demo.sample import contention
from devcluster.demo.scenarios import MORNING
from devcluster.services.stack import Options
from tests.support.waiting import wait_until as wait_until_true

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

PENDING = "/apis/visibility.kueue.x-k8s.io/v1beta2/clusterqueues/{}/pendingworkloads"
TEAMS = ("vision", "serving", "lab")
FOUR = [name for name, _who in contention.NOTEBOOKS[contention.HAVE_ONE :]]
CARD, SLICE, SHARE = "a100-sxm4-80gb", "a100-sxm4-80gb-2g-20gb", "a100-sxm4-80gb-shared"
IN_TIME_MS = 120_000
# Each look asks the API server several times.
wait_until = partial(wait_until_true, within_s=IN_TIME_MS / 1000, every_s=0.3)


@dataclass(frozen=True)
class Truth:
    """What an independent client sees."""

    admin: Api

    def used(self) -> dict[str, int]:
        """Units that Kueue has given out, by resource."""
        found = dict.fromkeys((contention.GPU, contention.SLICE, contention.SHARE), 0)
        for team in TEAMS:
            for flavor in self.admin.get(f"{KUEUE}/clusterqueues", team)["status"].get("flavorsUsage", []):
                for one in flavor["resources"]:
                    found[one["name"]] = found.get(one["name"], 0) + int(one["total"])
        return {resource: found[resource] for resource in (contention.GPU, contention.SLICE, contention.SHARE)}

    def line(self, team: str) -> list[str]:
        """Waiting Jobs, in Kueue's order."""
        items = self.admin.request("GET", PENDING.format(team))["items"]
        jobs = [one["metadata"]["ownerReferences"][0]["name"] for one in items]
        return [name.rpartition("-")[0] for name in jobs]

    def waiting(self) -> list[str]:
        return [name for team in TEAMS for name in self.line(team)]

    def becomes(self, *, cards: int, slices: int, shares: int, waiting: list[str]) -> None:
        wanted = ({contention.GPU: cards, contention.SLICE: slices, contention.SHARE: shares}, waiting)
        found = lambda: (self.used(), self.waiting())  # noqa: E731 - read where it is used
        wait_until(lambda: found() == wanted, what=str(wanted), story=lambda: str(found()))

    def node_of(self, team: str, workload: str, run: int) -> str:
        pods = self.admin.list("v1/pods", namespace=team, labels=f"batch.kubernetes.io/job-name={workload}-{run}")
        return next((str(pod["spec"].get("nodeName", "")) for pod in pods), "")

    def admitted(self, team: str) -> set[str]:
        """Names of Jobs."""
        found = self.admin.list(f"{KUEUE}/workloads", namespace=team)
        return {one["metadata"]["ownerReferences"][0]["name"] for one in found if "admission" in one.get("status", {})}


@dataclass(frozen=True)
class Morning:
    url: str
    accounts: dict[str, dict[str, Any]]
    truth: Truth

    def api(self, name: str) -> BrowserSession:
        return BrowserSession(self.url, token=self.accounts[name]["token"])


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Morning]:
    """As the command starts it, but no JupyterLab runs: what is looked at is who gets which units."""
    state = tmp_path_factory.mktemp("morning")
    options = Options(state=state, hardware=MORNING.hardware, notebooks_at_once=0, database_url="", redis_url="")
    with environment.started(options, scenario=MORNING) as (stack, portal, accounts):
        yield Morning(portal.url, {one["name"]: one for one in accounts}, Truth(stack.admin))


@pytest.fixture
def person(browser: Browser, begun: Morning) -> Iterator[Callable[[str], Page]]:
    """A browser for one user, signed in through the form. The page's console must stay empty."""
    contexts: list[BrowserContext] = []
    complaints: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            complaints.append(message.text)

    def sign_in(name: str) -> Page:
        context = browser.new_context(base_url=begun.url, reduced_motion="reduce")
        contexts.append(context)
        page = context.new_page()
        page.on("console", note)
        page.set_default_timeout(20_000)
        page.goto("/login")
        page.fill("[name=username]", begun.accounts[name]["email"])
        page.fill("[name=password]", begun.accounts[name]["password"])
        page.press("[name=password]", "Enter")
        page.wait_for_url(lambda url: "/login" not in url)
        return page

    yield sign_in
    for context in contexts:
        context.close()
    assert complaints == []


def test_four_of_36_cards_wait_until_work_moves_to_what_is_free(person: Callable[[str], Page], begun: Morning) -> None:
    truth = begun.truth
    truth.becomes(cards=32, slices=0, shares=0, waiting=FOUR)
    assert truth.line("lab") == FOUR

    # For whoever runs the cluster: the whole queue.
    olga = person("Olga")
    until_shows(olga, "/queue", "in all, while other teams do not use them", times=4)
    expect(olga.get_by_role("region", name="Classes")).to_contain_text("4 runs, 4 GPUs")
    rows = olga.get_by_role("region", name="Queued runs").get_by_role("listitem")
    expect(rows).to_have_count(4)
    for place, name in enumerate(FOUR, start=1):
        expect(rows.nth(place - 1)).to_contain_text(re.compile(rf"{place}\.\s*{name}"))

    # For those who wait: the numbers, their place, and what would start now.
    bob = person("Bob")
    bob.goto("/teams/lab")
    expect(bob.get_by_text("4 workloads are running or starting, 4 are queued.")).to_be_visible()
    waits = bob.locator("#state_waiting")
    expect(waits).to_contain_text("All 4 GPUs of your team's quota are in use. Queued workloads request 4 GPUs.")
    expect(waits.locator(".pos")).to_have_text([re.compile(place) for place in ("1st", "2nd", "3rd", "4th")])
    expect(waits.get_by_role("link", name="time-sliced ×4")).to_have_count(4)
    assert [row.get_by_role("link").first.inner_text() for row in waits.locator(".wait-row").all()] == FOUR

    # Its page leads to a share of a card.
    bob.goto(f"/teams/lab/workloads/{FOUR[1]}")
    expect(bob.locator("#state_progress")).to_contain_text("2nd in your team's queue")
    helps = bob.locator("#next-steps")
    expect(helps).to_contain_text("1 workload of your team is ahead")
    expect(helps).to_contain_text("Uses 1 of 8 shares; 16 free now on one node; starts now")
    helps.get_by_role("link", name="time-sliced ×4").click()
    bob.wait_for_url(re.compile(r"/change\?"))
    expect(bob.locator("[name=gpu_class]:checked, select[name=gpu_class]").first).to_have_value(SHARE)
    bob.get_by_role("button", name="Save and restart").click()
    bob.wait_for_url(re.compile(rf"/workloads/{FOUR[1]}(#|$)"))
    wait_until(lambda: truth.node_of("lab", FOUR[1], 2) == "a100-shared", what="it is on a share of a card")
    truth.becomes(cards=32, slices=0, shares=1, waiting=[FOUR[0], *FOUR[2:]])
    expect(bob.locator("main")).to_contain_text("A100 SXM4 80GB · time-sliced ×4", timeout=IN_TIME_MS)

    # A model needs no whole GPU: its own is lent to the first in the queue, though another team's.
    charlie = person("Charlie")
    charlie.goto("/teams/serving/workloads/model-01/change")
    charlie.locator(f"[name=gpu_class][value={SLICE}]").check()
    charlie.get_by_role("button", name="Save and restart").click()
    charlie.wait_for_url(re.compile("/workloads/model-01$"))
    wait_until(lambda: truth.node_of("serving", "model-01", 2) == "a100-mig", what="it is on a slice")
    wait_until(lambda: truth.node_of("lab", FOUR[0], 1), what="the first in line has a node")
    truth.becomes(cards=32, slices=1, shares=1, waiting=FOUR[2:])
    bob.goto("/teams/lab")
    expect(bob.locator("#state_running")).to_contain_text("5 GPUs in use, 1 borrowed", timeout=IN_TIME_MS)

    for page in (bob, charlie):
        page.goto("/catalog")  # no page is open, live, while the others move

    # Everybody else, as a script would: eight notebooks on shares, twelve models on slices.
    move(begun, "Bob", "lab", [name for name, _who in contention.NOTEBOOKS if name != FOUR[1]], SHARE)
    move(begun, "Charlie", "serving", [name for name in contention.MODELS if name != "model-01"], SLICE)
    truth.becomes(cards=16, slices=12, shares=8, waiting=[])
    trainings = {f"{name}-1" for name in contention.TRAININGS}
    assert truth.admitted("vision") == trainings, "nobody's training was touched"

    until_shows(olga, "/queue", "No queued runs")
    bob.goto("/teams/lab")
    expect(bob.get_by_text("8 workloads are running or starting, none is queued.")).to_be_visible(timeout=IN_TIME_MS)


def until_shows(page: Page, path: str, text: str, *, times: int = 1) -> None:
    """Of a page that is not live: opened until the mirror is where the cluster is."""

    def shows() -> bool:
        page.goto(path)
        return page.locator("main").inner_text().count(text) == times

    wait_until(shows, what=f"{path} says “{text}”")


def move(begun: Morning, who: str, team: str, names: list[str], gpu_class: str) -> None:
    """Declared with another class and started again: what the form does, by two calls for each."""

    def one(name: str) -> None:
        by, at = begun.api(who), f"/api/v1/workloads/{name}"
        now = by.api("GET", f"{at}?team={team}").json()
        kept = {key: now[key] for key in ("kind", "units", "image", "command", "volume", "options") if key in now}
        declared = by.api("PUT", f"{at}?team={team}", {**kept, "gpu_class": gpu_class})
        assert declared.status == 200, declared.text
        asked = by.api("POST", f"{at}/restart?team={team}")
        assert asked.status == 202, asked.text

    with ThreadPoolExecutor(4) as calls:
        list(calls.map(one, names))
