"""From asking for two cards to a cell that prints 42 and back, in a real browser on all of the portal's processes."""

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
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect

from devcluster import ports, postgres
from devcluster.api import Api
from devcluster.portal import NAMES, Portal
from devcluster.processes import Command, Supervisor
from tests.plugin import database_url
from tests.waiting import wait_until

ROOT = Path(__file__).parent.parent.parent
CLASS = "a100-sxm4-80gb"
STARTS_WITHIN_MS = 60_000

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


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
        "redis_url": urlsplit(services["redis_url"])._replace(path="/0").geturl(),
    }
    remove_demo(admin)
    with Supervisor(state / "log") as supervisor:
        portal = Portal(state, own, ports.choose(state), Path(services["bin_dir"]) / "caddy")
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
    argv = [sys.executable, "-m", "devcluster.seed", what, str(portal.state / "accounts.json")]
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


@pytest.fixture
def person(browser: Browser, running: Running) -> Iterator[Callable[[str], Page]]:
    """person("Alice"): her own browser, signed in through the form. Nothing may be said on a page's console."""
    contexts: list[BrowserContext] = []
    complaints: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and running.portal.url in message.location.get("url", ""):
            complaints.append(message.text)

    def sign_in(name: str) -> Page:
        context = browser.new_context(base_url=running.portal.url, reduced_motion="reduce")
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


def test_from_asking_to_42_and_back(person: Callable[[str], Page], running: Running, admin: Api) -> None:
    alice, dana = person("Alice"), person("Dana")

    alice.goto("/teams/team-a/requests/new")
    alice.fill(f"[name=units-{CLASS}]", "2")
    alice.fill("[name=justification]", "Two cards to learn.")
    alice.get_by_role("button", name="Send request").click()
    expect(alice.get_by_text("Pending").first).to_be_visible()
    request = urlsplit(alice.url).path

    dana.goto("/inbox")
    dana.locator(f"main a[href='{request}']").first.click()
    dana.get_by_role("button", name="Approve").click()
    expect(dana.get_by_text("Approved").first).to_be_visible()

    alice.goto("/teams/team-a/launch")
    alice.fill("[name=name]", "first")
    alice.get_by_role("button", name="Launch").last.click()
    # Live: nobody reloads the page until the notebook is ready.
    expect(alice.get_by_text("Ready on")).to_be_visible(timeout=STARTS_WITHIN_MS)

    alice.get_by_role("button", name="Open").click()
    at_the_notebook = re.compile(rf"//[a-z0-9]+\.{re.escape(running.portal.notebooks_domain)}/lab")
    alice.wait_for_url(at_the_notebook, wait_until="commit", timeout=STARTS_WITHIN_MS)
    alice.get_by_role("button", name="Python 3").first.click(timeout=STARTS_WITHIN_MS)
    cell = alice.locator(".jp-Cell .cm-content").first
    cell.click(timeout=STARTS_WITHIN_MS)
    # What is run before the kernel is connected is dropped without a word.
    expect(alice.get_by_text("| Idle")).to_be_visible(timeout=STARTS_WITHIN_MS)
    alice.keyboard.type("6*7")
    alice.keyboard.press("Shift+Enter")
    expect(alice.locator(".jp-OutputArea-output").first).to_have_text("42", timeout=STARTS_WITHIN_MS)

    alice.goto(f"{running.portal.url}/teams/team-a/workloads/first")
    alice.get_by_role("button", name="Stop", exact=True).first.click()
    expect(alice.get_by_text("Stopped").first).to_be_visible(timeout=STARTS_WITHIN_MS)
    assert admin.list("v1/pods", namespace="team-a") == []

    def all_are_free() -> bool:
        """Cards of other tests may still be on their way back."""
        alice.goto("/catalog")
        return alice.locator(f"#{CLASS} dl.free").get_by_text("16 of 16").is_visible()

    wait_until(all_are_free, within_s=60, what="every card is free again")
