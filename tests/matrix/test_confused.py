"""Requests that another site makes an authorized user send, or that can be read as two methods, change nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest
from django.http import HttpResponse
from django.test import Client

from cluster.models import Cluster
from tests.matrix.bodies import body
from tests.matrix.sweep import ROUTES, path_of, tuples_written
from tests.matrix.tables.api_table import API
from tests.matrix.tables.page_table import PAGES
from tests.matrix.tables.policy import RELATIONS, STAFF, TEAM, Row, expected
from tests.matrix.world import World, build
from tests.support.http.contract import query_of
from tests.support.http.visits import undone

pytestmark = pytest.mark.django_db
WRITES = [row for row in (*API, *PAGES) if row.method not in ("GET", "HEAD") and not row.open_because]
JSON = "application/json"
FORM = "application/x-www-form-urlencoded"


def who_may(row: Row, world: World) -> tuple[str, dict[str, str]] | None:
    """Returns a role and the values of an address for which the request would succeed."""
    for role in (*TEAM, *STAFF):
        for relation in RELATIONS:
            values = world.address(row.about, relation, role)
            if values is not None and "" in expected(row, role, relation):
                return role, values
    return None


def by_nobody_else(row: Row, world: World, role: str) -> Client:
    """The person's own browser, with the CSRF checks that Django's test client skips by default."""
    client = Client(enforce_csrf_checks=True)
    client.cookies = world.client(role).cookies
    return client


def path_and_body(row: Row, world: World, values: dict[str, str]) -> tuple[str, dict[str, Any]]:
    query = query_of(row.method, ROUTES[row.route], **values) if row.is_api else ""
    return path_of(row.route, values) + query, body(row.body, world, values)


def without_token(row: Row, path: str, sent: dict[str, Any], client: Client) -> HttpResponse:
    text, kind = (json.dumps(sent), JSON) if row.is_api else (urlencode(sent, doseq=True), FORM)
    return client.generic(row.method, path, text, content_type=kind)  # type: ignore[return-value]


def from_elsewhere(row: Row, path: str, sent: dict[str, Any], client: Client) -> HttpResponse:
    """Sends the right CSRF token from a page of another origin, as an attacker who has seen the token would."""
    client.get("/tokens")
    token = client.cookies["csrf"].value
    text, kind = (
        (json.dumps(sent), JSON)
        if row.is_api
        else (urlencode({**sent, "csrfmiddlewaretoken": token}, doseq=True), FORM)
    )
    headers = {"origin": "https://evil.example.org", "x-csrftoken": token}
    return client.generic(row.method, path, text, content_type=kind, headers=headers)  # type: ignore[return-value]


def overridden(row: Row, path: str, sent: dict[str, Any], client: Client) -> HttpResponse:
    """Sends a GET, which needs no CSRF token, with headers and parameters that ask for another method."""
    headers = {"x-http-method-override": row.method, "x-http-method": row.method, "x-method-override": row.method}
    query = urlencode({"_method": row.method, "_content": json.dumps(sent, default=str), "_content_type": JSON})
    return client.get(f"{path}{'&' if '?' in path else '?'}{query}", headers=headers)  # type: ignore[return-value]


@pytest.mark.parametrize("way", [without_token, from_elsewhere, overridden])
def test_nobody_is_made_to_do_it(cluster: Cluster, unique: str, way: Callable[..., HttpResponse]) -> None:
    world, done = build(cluster, unique), {}
    for row in WRITES:
        found = who_may(row, world)
        if found is None:
            continue
        role, values = found
        path, sent = path_and_body(row, world, values)
        with undone():
            client, written = by_nobody_else(row, world, role), tuples_written()
            answer = way(row, path, sent, client)
            refused = answer.status_code in (403, 404, 405) or way is overridden
            if not refused or tuples_written() != written:
                done[f"{row.method} {row.route}"] = answer.status_code
    assert done == {}


CONFUSED: dict[str, tuple[Callable[[dict[str, Any]], str], str, int, str]] = {
    "a key twice": (lambda sent: f'{{"{next(iter(sent))}": 1, {json.dumps(sent)[1:]}', JSON, 400, "duplicate_key"),
    "a form": (lambda sent: urlencode(sent, doseq=True), FORM, 415, "unsupported_media_type"),
    "plain text": (json.dumps, "text/plain", 415, "unsupported_media_type"),
    "another id": (lambda sent: json.dumps({**sent, "id": 1}), JSON, 422, "unknown_field"),
    "another team": (lambda sent: json.dumps({**sent, "tenant_id": "team-b"}), JSON, 422, "unknown_field"),
    "who did it": (lambda sent: json.dumps({**sent, "created_by": 1}), JSON, 422, "unknown_field"),
}


@pytest.mark.parametrize("how", CONFUSED)
def test_what_can_be_read_twice_is_not_read(cluster: Cluster, unique: str, settings: Any, how: str) -> None:
    settings.API_REQUESTS_PER_MINUTE = 1_000_000
    text, kind, status, code = CONFUSED[how]
    world, wrong, asked = build(cluster, unique), {}, 0
    for row in WRITES:
        found = who_may(row, world) if row.is_api and row.body else None
        if found is None:
            continue
        role, values = found
        path, sent = path_and_body(row, world, values)
        asked += 1
        with undone():
            client, written = world.client(role), tuples_written()
            answer: Any = client.generic(row.method, path, text(sent), content_type=kind)
            refused = answer.status_code >= 400
            said = answer.status_code, answer.json()["code"] if refused else "done"
            if said != (status, code) or tuples_written() != written:
                wrong[f"{row.method} {row.route}"] = said
    assert wrong == {}
    assert asked > 20
