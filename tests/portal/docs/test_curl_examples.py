"""Every page says which call of the API is the same, or the table says why there is none."""

from __future__ import annotations

import html
import os
import re
import subprocess
from typing import Any

import pytest
from django.test import Client, RequestFactory
from django.urls import resolve
from pytest_django.live_server_helper import LiveServer

from accounts.api_tokens import actions as api_token_actions
from accounts.core.actor import Actor
from accounts.models import Scope, User
from accounts.schema.hooks import documented_path
from catalog.models import GpuClass
from portal.docs.curl_examples import (
    CREATE_FORMS,
    PAGE_CALLS,
    PAGES_WITHOUT_CALL,
    REQUEST_FORMS,
    V1,
    curl,
    curl_for_page,
    expand_template,
)
from tenants.models import Tenant
from tests.support.http import contract
from tests.support.http.routes import all_routes
from tests.support.http.routes import filled as path_of
from tests.support.rows import make, mirrored

SHOWN = re.compile(r'id="same-call" tabindex="0">(.*?)</pre>', re.DOTALL)


def call_on(client: Client, path: str) -> str:
    """The call that a page shows; "" for none."""
    answer = client.get(path)
    assert answer.status_code == 200, path
    found = SHOWN.search(answer.content.decode())
    return html.unescape(found[1]) if found else ""


def test_every_page_has_a_call_or_a_reason(team_a: Tenant, olga: User) -> None:
    client = Client()
    client.force_login(olga)
    pages, values = set(), {"tenant": "team-a", "slug": "none", "name": "none"}
    for route, pattern in all_routes():
        if route.startswith(("api/v1/", "static")) or pattern.name is None:
            continue
        if client.get(path_of(route, values)).status_code != 405:
            pages.add(pattern.name)
    pages.add("api-schema")
    told = [*PAGE_CALLS, *REQUEST_FORMS, *CREATE_FORMS, *PAGES_WITHOUT_CALL]
    assert sorted(told) == sorted(set(told))
    assert set(told) == pages


@pytest.mark.parametrize("page", PAGE_CALLS)
def test_what_a_page_names_is_in_the_contract_with_its_filters(page: str) -> None:
    path, _, query = PAGE_CALLS[page].replace("{?", "?").partition("?")
    operation: dict[str, Any] = contract.contract()["paths"][documented_path(path)]["get"]
    (route,) = [route for route, pattern in all_routes() if pattern.name == page]
    taken = {one["name"] for one in operation.get("parameters", []) if one["in"] == "query"}
    assert {one.split("=")[0] for one in re.findall(r"[\w=]+", query)} <= taken
    in_route = set(re.findall(r"<\w+:(\w+)>", route))
    assert set(re.findall(r"\{(\w+)\}", PAGE_CALLS[page])) <= in_route
    # A page of one team is never shown as a call about all of them.
    assert "tenant" not in in_route or "tenant" in PAGE_CALLS[page]


def test_filters_of_the_page_go_along_and_others_do_not(alice: User) -> None:
    request = RequestFactory().get("/teams/team-a/requests?state=pending&cursor=x&team=team-b")
    request.resolver_match = resolve("/teams/team-a/requests")
    call = curl_for_page(request)
    assert call.endswith(f' "$PORTAL{V1}/requests?team=team-a&state=pending"')
    assert expand_template(PAGE_CALLS["queue"], {"class": "a100", "q": "x"}) == f"{V1}/queue?gpu_class=a100"


def test_nothing_that_is_typed_means_anything_to_a_shell() -> None:
    values = {"name": "a b/$(id)`id`\"'\n", "tenant": "$HOME&x=1"}
    assert (
        expand_template("/w/{name}{?team=tenant}", values)
        == "/w/a%20b%2F%24%28id%29%60id%60%22%27%0A?team=%24HOME%26x%3D1"
    )
    assert curl("POST", "/x", body={"why": "it's $HOME"}).endswith("""-d '{\n  "why": "it'"'"'s $HOME"\n}'""")


def test_a_page_of_an_error_shows_no_call(team_a: Tenant, charlie: User) -> None:
    client = Client()
    client.force_login(charlie)
    answer = client.get("/teams/team-a/workloads")
    assert answer.status_code == 404
    assert b"same-call" not in answer.content


PAGES = [
    ("alice", "/catalog"),
    ("alice", "/catalog/{slug}"),
    ("alice", "/cluster"),
    ("alice", "/teams/team-a"),
    ("alice", "/teams/team-a/history"),
    ("alice", "/teams/team-a/members"),
    ("alice", "/teams/team-a/grants"),
    ("alice", "/teams/team-a/images"),
    ("alice", "/teams/team-a/requests?state=pending"),
    ("alice", "/teams/team-a/secrets"),
    ("alice", "/teams/team-a/volumes"),
    ("alice", "/teams/team-a/workloads"),
    ("dana", "/inbox"),
    ("dana", "/history"),
    ("dana", "/delegations"),
    ("olga", "/queue"),
    ("olga", "/queue?class={slug}&team=team-a"),
]


@pytest.mark.django_db(transaction=True)
def test_the_calls_work_as_they_stand(
    live_server: LiveServer, team_a: Tenant, a100: GpuClass, alice: User, dana: User, olga: User
) -> None:
    """Taken from the pages, run by a shell, with a token of the same person."""
    mirrored.hardware_seen(a100.cluster)
    make.grant(team_a, a100, units=4)
    for person in (alice, dana, olga):
        by = Actor(user=person, via="page")
        make.second_factor(person)
        _, token = api_token_actions.create_token(name="shell", scopes=list(Scope), expires_in_days=1, by=by)
        client = Client()
        client.force_login(person)
        for path in [path.format(slug=a100.slug) for who, path in PAGES if f"{who}@example.org" == person.email]:
            assert (path, status_of(call_on(client, path), live_server.url, token)) == (path, "200")
        if person == alice:
            asks = call_on(client, "/teams/team-a/requests/new").replace("CLASS", a100.slug)
            assert status_of(asks, live_server.url, token) == "201"


def status_of(call: str, portal: str, token: str) -> str:
    script = "curl() { command curl -sS -o /dev/null -w '%{http_code}' \"$@\"; }\n" + call
    shell = {"PATH": os.environ["PATH"], "PORTAL": portal, "TOKEN": token}
    return subprocess.run(["bash", "-c", script], env=shell, capture_output=True, text=True, check=True).stdout
