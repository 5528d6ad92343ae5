"""From asking for two cards to a cell that prints 42 and back, in a real browser on all of the portal's processes.

By form and by link, with a file that outlives the run; by keyboard alone; without script up to the notebook.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, expect

from devcluster.client.kube import Api
from devcluster.demo.scenarios import QUIET
from devcluster.processes import ports
from devcluster.processes.supervisor import Command, Supervisor
from devcluster.services import postgres
from devcluster.services.portal import LOGINS, NAMES, Portal
from tests.plugin import database_url
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[3]
CLASS, SLICE = "a100-sxm4-80gb", "a100-sxm4-80gb-2g-20gb"
STARTS_WITHIN_MS = 60_000

pytestmark = [pytest.mark.browser, pytest.mark.timeout(420)]


@dataclass(frozen=True)
class Running:
    portal: Portal
    accounts: dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def running(services: dict[str, Any], admin: Api, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The demo's own processes and people, on the session's services and a database of their own."""
    state = tmp_path_factory.mktemp("portal")
    name = f"e2e_{os.getpid()}"
    own = {
        **services,
        "database_url": postgres.ensure_database(services["database_url"], name),
        "has_logins": True,
        "redis_url": urlsplit(services["redis_url"])._replace(path="/0").geturl(),
    }
    remove_demo(admin)
    with Supervisor(state / "log") as supervisor:
        portal = Portal(state, own, ports.assign_ports(state), Path(services["bin_dir"]) / "caddy")
        seed(supervisor, portal, "people")
        for command in portal.commands():
            supervisor.start(command)
        supervisor.until_ready(*NAMES)
        seed(supervisor, portal, "catalog")
        accounts = json.loads((state / "accounts.json").read_text())
        yield Running(portal, {account["name"]: account for account in accounts})
    remove_demo(admin)
    drop_database(services["database_url"], name)


def seed(supervisor: Supervisor, portal: Portal, what: str) -> None:
    argv = [sys.executable, "-m", "devcluster.demo.seed", what, str(portal.state / "accounts.json"), QUIET.name]
    argv += portal.write_logins() if what == "people" else []
    ran = supervisor.run(Command(f"seed-{what}", argv, env=portal.environment("seed"), cwd=ROOT), within_s=120)
    assert ran.process.returncode == 0, ran.log.read_text()


def remove_demo(admin: Api) -> None:
    """What the demo's people have in the cluster, by its names; the session's other tests use names of their own."""
    for team in ("team-a", "team-c"):
        for resource in ("v1/namespaces", "kueue.x-k8s.io/v1beta2/clusterqueues"):
            if admin.find(resource, team) is not None:
                admin.delete(resource, team)


def drop_database(server_url: str, name: str) -> None:
    import psycopg

    with psycopg.connect(database_url(server_url, "postgres"), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        for process in LOGINS:
            connection.execute(f"DROP ROLE IF EXISTS {name}_{process}_login")


@pytest.fixture
def person(browser: Browser, running: Running) -> Iterator[Callable[..., Page]]:
    """person("Alice"): her own browser, signed in through the form. The page's console must stay empty."""
    contexts: list[BrowserContext] = []
    complaints: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and running.portal.url in message.location.get("url", ""):
            complaints.append(message.text)

    def sign_in(name: str, **options: Any) -> Page:
        context = browser.new_context(base_url=running.portal.url, reduced_motion="reduce", **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", note)
        page.set_default_timeout(15_000)
        page.goto("/login")
        page.fill("[name=username]", running.accounts[name]["email"])
        page.fill("[name=password]", running.accounts[name]["password"])
        page.press("[name=password]", "Enter")
        page.wait_for_url(lambda url: "/login" not in url)
        return page

    yield sign_in
    for context in contexts:
        context.close()
    assert complaints == []


def at_the_notebook(running: Running) -> re.Pattern[str]:
    return re.compile(rf"//[a-z0-9]+\.{re.escape(running.portal.notebooks_domain)}/lab")


def open_it(page: Page, running: Running) -> Page:
    """Returns the new tab; the page of the portal stays."""
    with page.expect_popup() as popup:
        page.get_by_role("button", name="Open").click()
    popup.value.wait_for_url(at_the_notebook(running), wait_until="commit", timeout=STARTS_WITHIN_MS)
    return popup.value


# How many steps of the tree are done, each time that it changes; a reload would forget what was noted.
NOTE_STEPS = """
() => {
  window.noted = [];
  const note = () => {
    const done = document.querySelectorAll("#state_progress .step-done").length;
    if (window.noted.at(-1) !== done) window.noted.push(done);
  };
  note();
  new MutationObserver(note).observe(document.querySelector("main"), { subtree: true, childList: true });
}
"""


def test_from_asking_to_42_and_back(person: Callable[..., Page], running: Running, admin: Api) -> None:
    """What was saved on a new volume is there when the notebook is started again."""
    alice, dana = person("Alice"), person("Dana")

    alice.goto("/teams/team-a/requests/new")
    alice.locator("[name=class]").select_option(CLASS)
    alice.get_by_role("button", name="Continue").click()
    alice.fill(f"[name=units-{CLASS}]", "2")
    alice.fill("[name=justification]", "Two GPUs for training.")
    alice.get_by_role("button", name="Submit request").click()
    expect(alice.get_by_text("Pending").first).to_be_visible()
    request = urlsplit(alice.url).path

    dana.goto("/inbox")
    dana.locator(f"main a[href='{request}']").first.click()
    dana.get_by_role("button", name="Approve").click()
    expect(dana.get_by_text("Approved").first).to_be_visible()

    alice.goto("/teams/team-a/launch")
    alice.fill("[name=name]", "first")
    alice.get_by_text("More: CPU").click()
    alice.fill("[name=volume]", "answers")
    alice.fill("[name=volume_gib]", "5")
    alice.get_by_text("Objects created", exact=True).click()
    made = alice.locator("#made")
    expect(made).to_contain_text("PersistentVolumeClaim")
    expect(made.get_by_text("answers", exact=True)).to_be_visible()
    assert admin.list("v1/persistentvolumeclaims", namespace="team-a") == []
    alice.get_by_role("button", name="Launch").last.click()
    alice.wait_for_url("**/workloads/first")
    alice.evaluate(NOTE_STEPS)
    # Live: nobody reloads the page until the notebook is ready.
    expect(alice.get_by_text("Ready on")).to_be_visible(timeout=STARTS_WITHIN_MS)
    steps = alice.locator("#state_progress .steps li")
    expect(steps.locator("b")).to_have_text(
        ["Requested", "Queued", "Node assigned", "Storage", "Image", "Starting", "Ready"]
    )
    expect(alice.locator("#state_progress .step-done")).to_have_count(7)
    noted = alice.evaluate("window.noted")
    assert noted == sorted(noted)
    assert (len(noted) > 2, noted[-1]) == (True, 7)

    lab = open_it(alice, running)
    lab.get_by_role("button", name="Python 3").first.click(timeout=STARTS_WITHIN_MS)
    cell = lab.locator(".jp-Cell .cm-content").first
    cell.click(timeout=STARTS_WITHIN_MS)
    # Input before the kernel is connected is dropped without a message.
    expect(lab.get_by_text("| Idle")).to_be_visible(timeout=STARTS_WITHIN_MS)
    lab.keyboard.type("6*7")
    lab.keyboard.press("Shift+Enter")
    expect(lab.locator(".jp-OutputArea-output").first).to_have_text("42", timeout=STARTS_WITHIN_MS)
    lab.keyboard.press("ControlOrMeta+S")
    naming = lab.get_by_role("dialog")
    naming.get_by_role("textbox").fill("answer.ipynb")
    naming.get_by_role("button", name="Rename").click()
    saved = lab.get_by_role("listitem", name="answer.ipynb")
    expect(saved).to_be_visible()

    lab.close()
    alice.get_by_role("link", name="Stop…").click()
    alice.get_by_role("dialog").get_by_role("button", name="Stop", exact=True).click()
    expect(alice.get_by_text("Stopped", exact=True).first).to_be_visible(timeout=STARTS_WITHIN_MS)
    assert admin.list("v1/pods", namespace="team-a") == []

    alice.get_by_role("button", name="Start again").click()
    expect(alice.get_by_text("run 2, requested")).to_be_visible()
    expect(alice.get_by_text("Ready on")).to_be_visible(timeout=STARTS_WITHIN_MS)
    lab = open_it(alice, running)
    saved = lab.get_by_role("listitem", name="answer.ipynb")
    expect(saved).to_be_visible(timeout=STARTS_WITHIN_MS)
    saved.dblclick()
    expect(lab.locator(".jp-Cell .cm-content").first).to_have_text("6*7", timeout=STARTS_WITHIN_MS)
    expect(lab.locator(".jp-OutputArea-output").first).to_have_text("42")
    lab.close()
    alice.get_by_role("link", name="Stop…").click()
    alice.get_by_role("dialog").get_by_role("button", name="Stop", exact=True).click()
    expect(alice.get_by_text("Stopped", exact=True).first).to_be_visible(timeout=STARTS_WITHIN_MS)

    def all_are_free() -> bool:
        """GPUs of other tests may not be free yet."""
        alice.goto("/catalog")
        return alice.locator(f"#{CLASS} dl.free").get_by_text("16 of 16").is_visible()

    wait_until(all_are_free, within_s=60, what="every GPU is free again")


class Clicks:
    """Counts the clicks of a newcomer."""

    def __init__(self) -> None:
        self.labels: list[str] = []

    def __call__(self, control: Locator) -> None:
        self.labels.append(control.inner_text().strip())
        control.click(timeout=STARTS_WITHIN_MS)


def test_a_newcomer_needs_no_more_than_twelve_clicks_and_types_nothing_twice(
    browser: Browser, person: Callable[..., Page], running: Running
) -> None:
    """From the sign-in form to 42 and back, along what the pages offer. The class is chosen once, in the catalog."""
    dana, click = person("Dana"), Clicks()
    context = browser.new_context(base_url=running.portal.url, reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(15_000)
    page.goto("/")
    page.fill("[name=username]", running.accounts["Alice"]["email"])
    page.fill("[name=password]", running.accounts["Alice"]["password"])
    click(page.get_by_role("button", name="Sign in"))
    click(page.get_by_role("navigation").get_by_role("link", name="Catalog"))
    card = page.locator(f"#{SLICE}")
    click(card.get_by_role("link", name="Request"))
    page.fill(f"[name=units-{SLICE}]", "1")
    page.fill("[name=justification]", "To learn.")
    click(page.get_by_role("button", name="Submit request"))
    page.wait_for_url(re.compile(r"/requests/\d+$"))

    dana.goto(urlsplit(page.url).path)
    dana.get_by_role("button", name="Approve").click()
    expect(dana.get_by_text("Approved").first).to_be_visible()

    click(page.get_by_role("navigation").get_by_role("link", name="Catalog"))
    launch = card.get_by_role("link", name="Launch")

    def is_applied() -> bool:
        page.reload()
        return launch.is_visible()

    wait_until(is_applied, within_s=STARTS_WITHIN_MS / 1000, what="the quota can be used")
    click(launch)
    expect(page.get_by_role("radio", name=re.compile("2g.20gb"))).to_be_checked()
    click(page.get_by_role("button", name="Launch", exact=True))
    expect(page.get_by_text("Ready on")).to_be_visible(timeout=STARTS_WITHIN_MS)
    with page.expect_popup() as popup:
        click(page.get_by_role("button", name="Open"))
    lab = popup.value
    click(lab.get_by_role("button", name="Python 3").first)
    expect(lab.get_by_text("| Idle")).to_be_visible(timeout=STARTS_WITHIN_MS)
    lab.keyboard.type("6*7")
    lab.keyboard.press("Shift+Enter")
    expect(lab.locator(".jp-OutputArea-output").first).to_have_text("42", timeout=STARTS_WITHIN_MS)
    lab.close()
    click(page.get_by_role("link", name="Stop…"))
    click(page.get_by_role("dialog").get_by_role("button", name="Stop", exact=True))
    expect(page.get_by_text("Stopped", exact=True).first).to_be_visible(timeout=STARTS_WITHIN_MS)
    assert len(click.labels) <= 12, click.labels
    context.close()


def is_seen(page: Page) -> bool:
    """The focused element is visibly focused."""
    style = "const style = getComputedStyle(document.activeElement);"
    drawn = "style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0"
    return bool(page.evaluate(f"() => {{ {style} return ({drawn}) || style.boxShadow !== 'none'; }}"))


def tab_to(page: Page, control: Locator) -> None:
    for _ in range(80):
        if control.evaluate("one => one === document.activeElement"):
            break
        page.keyboard.press("Tab")
    expect(control).to_be_focused()
    assert is_seen(page)


def test_by_keyboard_alone_from_the_team_to_the_notebook(person: Callable[..., Page], running: Running) -> None:
    charlie = person("Charlie")
    charlie.goto("/teams/team-c")
    tab_to(charlie, charlie.get_by_role("link", name="Launch notebook"))
    charlie.keyboard.press("Enter")
    charlie.wait_for_url("**/teams/team-c/launch?kind=notebook")
    tab_to(charlie, charlie.locator("[name=name]"))
    charlie.keyboard.press("ControlOrMeta+A")
    charlie.keyboard.type("typed")
    tab_to(charlie, charlie.get_by_role("button", name="Launch", exact=True))
    charlie.keyboard.press("Space")
    charlie.wait_for_url("**/workloads/typed")
    expect(charlie.get_by_text("Ready on")).to_be_visible(timeout=STARTS_WITHIN_MS)
    button = charlie.get_by_role("button", name="Open")
    expect(button).not_to_have_attribute("aria-disabled", "true")
    tab_to(charlie, button)
    with charlie.expect_popup() as popup:
        charlie.keyboard.press("Enter")
    popup.value.wait_for_url(at_the_notebook(running), wait_until="commit", timeout=STARTS_WITHIN_MS)
    popup.value.close()

    tab_to(charlie, charlie.get_by_role("link", name="Stop…"))
    charlie.keyboard.press("Enter")
    tab_to(charlie, charlie.get_by_role("button", name="Stop", exact=True))
    charlie.keyboard.press("Enter")
    expect(charlie.get_by_text("Stopped").first).to_be_visible(timeout=STARTS_WITHIN_MS)


def test_without_script_up_to_open(person: Callable[..., Page], running: Running, admin: Api) -> None:
    charlie = person("Charlie", java_script_enabled=False)
    charlie.goto(f"/launch?class={CLASS}&name=linked")
    expect(charlie.get_by_text("Filled in from a link. Nothing has started.")).to_be_visible()
    assert admin.find("batch/v1/jobs", "linked-1", namespace="team-c") is None
    charlie.get_by_role("button", name="Launch this").click()
    stop_it(charlie, "linked")

    charlie.goto("/teams/team-c/launch?fresh=1")
    charlie.fill("[name=name]", "plain")
    charlie.get_by_role("button", name="Launch", exact=True).click()
    charlie.wait_for_url("**/workloads/plain")

    def is_ready() -> bool:
        charlie.reload()
        return charlie.get_by_text("Ready on").is_visible()

    wait_until(is_ready, within_s=STARTS_WITHIN_MS / 1000, what="it is ready")
    open_it(charlie, running).close()
    stop_it(charlie, "plain")


def stop_it(page: Page, name: str) -> None:
    page.wait_for_url(f"**/workloads/{name}")
    page.get_by_role("link", name="Stop…").click()
    page.get_by_role("button", name="Stop", exact=True).click()

    def is_stopped() -> bool:
        page.reload()
        return page.get_by_text("Stopped").first.is_visible()

    wait_until(is_stopped, within_s=STARTS_WITHIN_MS / 1000, what="it is stopped")
