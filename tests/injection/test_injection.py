"""What a user types stays text for all other users: a payload is put into every field and every column, then all pages,
their forms, emails, the catalog's file and streams are checked, as bytes and in a browser.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings
from django.core.management import call_command
from django.test import Client
from playwright.sync_api import ConsoleMessage, Dialog, Page

from accounts.events.reconcile import message_for
from accounts.models import Delivery, User
from catalog.models import GpuClass
from cluster.models import MirrorNode
from tenants.models import Namespace, QuotaRequest, TeamRequest
from tests.e2e.conftest import browser_type_launch_args, open_page
from tests.injection.marked import mark, mark_rows
from tests.injection.payload import CANDIDATES, LONG, SHORT, forms_of, unescaped
from tests.support.http.admin_addresses import addresses
from tests.support.http.bodies import Call
from tests.support.http.routes import all_routes, filled
from tests.support.http.visits import undone
from tests.support.processes.streaming import Doors, Stream, session_of
from tests.support.rows import make
from tests.support.waiting import wait_until
from tests.test_bodies import calls

# Fixtures of other modules, by their names.
__all__ = ["browser_type_launch_args", "calls", "open_page"]
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True), pytest.mark.timeout(480)]
# These rules accept no part of the payload: names, addresses, choices. Each field answers with a sentence.
REFUSED = {
    "adoptions_accept accepted.[]: 409 conflict",
    "adoptions_propose namespace: 422 bad_adoption",
    "adoptions_propose slug: 422 bad_name",
    "image_prefixes_allow prefix: 422 bad_prefix",
    "joins_ask team: 404 not_found",
    "maintenances_plan mig_config: 422 bad_maintenance",
    "maintenances_plan nodes.[]: 422 bad_maintenance",
    "maintenances_plan plugin_config: 422 bad_maintenance",
    "maintenances_preview mig_config: 422 bad_maintenance",
    "maintenances_preview nodes.[]: 422 bad_maintenance",
    "maintenances_preview plugin_config: 422 bad_maintenance",
    "maintenances_preview reason: 409 in_maintenance",
    "mig_sets_plan nodes.[]: 422 invalid",
    "mig_sets_plan set: 422 invalid",
    "members_add email: 422 bad_address",
    "operators_announcements_create classes.[]: 422 bad_announcement",
    "operators_announcements_create teams.[]: 422 bad_announcement",
    "node_measurements_record output: 422 bad_measurement",
    "people_add email: 422 bad_address",
    "people_change roles.[]: 422 invalid",
    "requests_file lines.[].gpu_class: 422 unknown_class",
    "requests_file team: 404 not_found",
    "team_requests_ask bundle: 422 unknown_bundle",
    "team_requests_ask slug: 422 bad_name",
    "team_requests_decide slug: 422 bad_name",
    "team_tokens_create scopes.[]: 422 invalid",
    "tokens_create scopes.[]: 422 invalid",
    "workloads_declare gpu_class: 422 unknown_class",
    "workloads_declare image: 422 unknown_image",
    "workloads_declare options.mount_path: 422 no_volume",
    "workloads_declare options.reference: 422 no_repository",
    "workloads_declare options.repository: 422 bad_repository",
    "workloads_declare options.script: 422 command_and_script",
    "workloads_declare options.secrets.[]: 422 bad_variable",
    "workloads_declare options.topology_level: 422 bad_topology_level",
    "workloads_declare volume: 422 bad_volume",
    "workloads_launch gpu_class: 422 unknown_class",
    "workloads_launch image: 422 unknown_image",
    "workloads_launch name: 422 bad_name",
    "workloads_launch options.mount_path: 422 no_volume",
    "workloads_launch options.reference: 422 no_repository",
    "workloads_launch options.repository: 422 bad_repository",
    "workloads_launch options.script: 422 command_and_script",
    "workloads_launch options.secrets.[]: 422 bad_variable",
    "workloads_launch options.topology_level: 422 bad_topology_level",
    "workloads_launch volume: 422 bad_volume",
    "workloads_start group: 409 still_running",
}


def paths(pk: dict[str, int], name: str, slug: str) -> list[str]:
    """Every page of the URL map, about existing rows."""
    found = []
    for route, _pattern in all_routes():
        if route.startswith(("api/v1", "live/", "static", "admin", "logout", "livez", "readyz", "open/")):
            continue
        if route.startswith("nodes/<"):
            found += [filled(route, {"name": node.name}) for node in MirrorNode.objects.order_by("name")]
            continue
        number = next((str(pk[start]) for start in pk if route.startswith(start)), "1")
        found.append(filled(route, {"tenant": "team-a", "name": name, "slug": slug, "pk": number}))
    return found


# What a script of the payload left, and how many elements it created.
OWN = "[window.marked ?? null, document.querySelectorAll('[data-marked], [onerror]').length]"


@pytest.fixture
def numbers(calls: dict[str, Call], bob: User) -> dict[str, int]:
    """Primary keys of the rows that pages are about, by the prefix of their URLs."""
    request, founded = (rows.order_by("pk")[0].pk for rows in (QuotaRequest.objects, TeamRequest.objects))
    return {"requests/": request, "team-requests/": founded, "people/": bob.pk}


@dataclass
class Looked:
    """`shown`: which user sees a payload where, each page once. `forms`: each field sent, by its form's URL."""

    shown: list[tuple[Client, str]] = field(default_factory=list)
    forms: set[tuple[str, str]] = field(default_factory=set)
    wrong: list[Any] = field(default_factory=list)


def signed_in(who: User) -> Client:
    client = Client(raise_request_exception=False)
    return make.administrator(client, who)


def walk(pages: list[str], clients: list[Client], *, fills_in: bool = True) -> Looked:
    """Visits every page and sends every form once; a refused form is checked, too: its fields show the input again."""
    looked = Looked()
    shown, forms, wrong = looked.shown, looked.forms, looked.wrong
    for client in clients:
        for path in pages:
            answer = client.get(path)
            if answer.status_code >= 500:
                wrong.append((path, answer.status_code))
            if answer.status_code != 200 or not answer["Content-Type"].startswith("text/html"):
                continue
            if b"data-marked" in answer.content and path not in {seen for _client, seen in shown}:
                shown.append((client, path))
            wrong += [(path, found) for found in unescaped(answer.content)]
            for form in forms_of(answer.content.decode()) if fills_in else ():
                action = form.action or path
                for name in form.texts:
                    if (action, name) in forms:
                        continue
                    forms.add((action, name))
                    for text in (CANDIDATES[0], CANDIDATES[-1]):
                        with undone():
                            said = client.post(action, {**form.fields, name: text}, follow=True)
                        if said.status_code >= 500:
                            wrong.append((action, name, said.status_code))
                        wrong += [(action, name, found) for found in unescaped(said.content)]
    return looked


def check_mails() -> None:
    """Emails are plain text, and no header is injected."""
    deliveries = list(Delivery.objects.all())
    assert any("data-marked" in one.body for one in deliveries)
    for delivery in deliveries:
        sent = message_for(delivery).message()
        assert (sent.get_content_type(), sent.is_multipart()) == ("text/plain", False)
        assert sent["Bcc"] is None
        assert sent["To"].count("@") == 1
        assert "\n" not in delivery.subject


def check_file(path: Path) -> None:
    """The catalog's file, which a site keeps in git: reading it returns what was written."""
    call_command("catalog", "export", str(path))
    text = path.read_text()
    assert "data-marked" in text
    assert LONG in {one["summary"] for one in yaml.safe_load(text)["classes"].values()}


def check_stream(doors: Doors, namespace: str, who: User) -> None:
    stream = Stream(doors, f"/live/{namespace}", session_of(who))
    try:
        wait_until(lambda: stream.has("data-marked"), what="the stream of the team")
    finally:
        stream.close()
    assert unescaped(stream.received) == []


def check_browser(shown: list[tuple[Client, str]], open_page: Callable[..., Page]) -> None:
    """No dialog, no script, no element of the payload, and no violation of the content security policy."""
    said: list[str] = []
    wrong: list[Any] = []
    browsers: dict[int, Page] = {}

    def dismiss(dialog: Dialog) -> None:
        said.append(dialog.message)
        dialog.dismiss()

    def note(message: ConsoleMessage) -> None:
        if "Content Security Policy" in message.text:
            said.append(message.text)

    for client, path in shown:
        if id(client) not in browsers:
            page = browsers[id(client)] = open_page("/login")
            session = client.cookies[settings.SESSION_COOKIE_NAME].value
            page.context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": page.url}])
            page.on("dialog", dismiss)
            page.on("console", note)
        page = browsers[id(client)]
        page.goto(path, wait_until="load")
        own = page.evaluate(OWN)
        if own != [None, 0] or said:
            wrong.append((path, own, [*said]))
            said.clear()
    assert wrong == []
    # Where it is not escaped, the check sees it.
    page = next(iter(browsers.values()))
    page.evaluate("text => document.body.insertAdjacentHTML('beforeend', text)", LONG)
    wait_until(lambda: page.evaluate(OWN) == [None, 1] and said, what="what the policy stopped")


def test_whatever_is_typed_is_text_for_everybody(
    calls: dict[str, Call], numbers: dict[str, int], a100: GpuClass, namespace_a: Namespace, alice: User, dana: User,
    olga: User, doors: Doors, open_page: Callable[..., Page], tmp_path: Path,
) -> None:  # fmt: skip
    """One long test: planting the payloads takes longer than one kind of check."""
    silent = MirrorNode.objects.order_by("name")[0]
    silent.ready, silent.record = False, {**silent.record, "ready_reason": SHORT, "ready_message": LONG}
    silent.save()
    took, refused = mark(calls)
    assert refused == REFUSED, "of a new field: whether it takes a payload, or why not"
    assert len(took) >= 25
    assert mark_rows() == []

    pages = sorted({path for name in ("one", "two") for path in paths(numbers, name, a100.slug)})
    looked = walk(pages, [signed_in(who) for who in (alice, dana, olga)])
    assert looked.wrong == []
    assert len(looked.forms) >= 45
    assert len(looked.shown) >= 40
    assert f"/nodes/{silent.name}" in [path for _client, path in looked.shown]
    # The admin's forms are Django's own.
    administration = walk([*addresses()], [make.administrator(signed_in(olga), olga)], fills_in=False)
    assert administration.wrong == []
    assert len(administration.shown) >= 10
    check_mails()
    check_file(tmp_path / "catalog.yaml")
    check_stream(doors, namespace_a.name, alice)
    check_browser(looked.shown + administration.shown, open_page)
