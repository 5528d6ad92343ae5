"""The API's conventions, seen through the views of this app."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.core.management import call_command
from django.http import HttpResponse
from django.test import Client
from django.urls import get_resolver

from accounts.core.actor import Actor, system_actor
from accounts.events import actions
from accounts.models import ApiToken, Event, User
from cluster.models import Cluster
from tenants.models import Tenant
from tests.support.http import contract as contract_of
from tests.support.http.callers import caller
from tests.support.rows import make


@pytest.fixture
def as_alice(client: Client, alice: User) -> Client:
    return caller(alice)


def post(client: Client, body: Any) -> HttpResponse:
    text = body if isinstance(body, str | bytes) else json.dumps(body)
    return client.post("/api/v1/tokens", text, content_type="application/json")


# ---- request bodies and errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("{", "not_json"),
        (b'{"name": "\xff"}', "not_json"),
        ('{"name": NaN}', "not_json"),
        ('{"name": "\\ud800"}', "not_json"),
        ('{"a":' * 100_000, "not_json"),
        ("[" * 100_000, "not_json"),
        ('{"name": ' + "9" * 5_000 + "}", "not_json"),
        ("[]", "not_an_object"),
        ('"ci"', "not_an_object"),
        ("null", "not_an_object"),
        ('{"name": "a", "name": "b"}', "duplicate_key"),
        ('{"name": {"a": 1, "a": 1}}', "duplicate_key"),
    ],
)
def test_a_body_that_is_not_one_plain_object_is_refused(as_alice: Client, body: str | bytes, code: str) -> None:
    answer = post(as_alice, body)

    assert answer.status_code == 400
    assert answer.json()["code"] == code


def test_a_body_that_is_too_large_is_refused(as_alice: Client) -> None:
    answer = post(as_alice, {"name": "x" * 2_000_000})

    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


def test_other_formats_are_refused(as_alice: Client) -> None:
    answer = as_alice.post("/api/v1/tokens", {"name": "form"})

    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({}, "invalid", "name"),
        ({"name": None, "scopes": ["read"]}, "invalid", "name"),
        ({"name": "a\0b", "scopes": ["read"]}, "invalid", "name"),
        ({"name": "ci", "scopes": "read"}, "invalid", "scopes"),
        ({"name": "ci", "scopes": [["read"]]}, "invalid", "scopes[0]"),
        ({"name": "ci", "scopes": ["root"]}, "unknown_scope", "scopes"),
        ({"name": "ci", "scopes": ["read"], "expires_in_days": 2**70}, "invalid", "expires_in_days"),
    ],
)
def test_what_is_wrong_is_named(as_alice: Client, body: dict[str, Any], code: str, field: str) -> None:
    answer = post(as_alice, body)

    assert answer.status_code == 422
    assert (answer.json()["code"], answer.json()["field"]) == (code, field)
    assert set(answer.json()) == {"code", "message", "field"}


def test_a_path_or_method_that_is_not_there_has_the_same_body(as_alice: Client) -> None:
    missing = as_alice.get("/api/v1/nonsense")
    wrong = as_alice.put("/api/v1/me", {}, content_type="application/json")

    assert (missing.status_code, missing.json()["code"]) == (404, "not_found")
    assert (wrong.status_code, wrong.json()["code"]) == (405, "method_not_allowed")


# ---- tokens --------------------------------------------------------------------------------------------------------


def test_a_token_is_made_listed_used_and_revoked(as_alice: Client) -> None:
    made = post(as_alice, {"name": "nightly", "scopes": ["read"], "expires_in_days": 2})
    assert (made.status_code, made["Cache-Control"]) == (201, "no-store")
    text, prefix = made.json()["token"], made.json()["prefix"]

    listed = as_alice.get("/api/v1/tokens").json()
    assert [token["name"] for token in listed["items"]] == ["nightly", "script"]
    assert text not in json.dumps(listed)

    nightly = Client(headers={"Authorization": f"Bearer {text}"})
    assert nightly.get("/api/v1/me").json()["scopes"] == ["read"]

    assert as_alice.delete(f"/api/v1/tokens/{prefix}").status_code == 204
    assert nightly.get("/api/v1/me").json()["code"] == "token_revoked"
    assert as_alice.delete(f"/api/v1/tokens/{prefix}").status_code == 404
    via = list(Event.objects.order_by("id").values_list("verb", "via"))
    own = ApiToken.objects.get(name="script").prefix
    assert via[1:] == [("token.created", f"token {own}"), ("token.revoked", f"token {own}")]


def test_a_name_twice_is_a_conflict_beside_its_field(as_alice: Client) -> None:
    answer = post(as_alice, {"name": "script", "scopes": ["read"], "expires_in_days": 2})

    assert answer.status_code == 409
    assert (answer.json()["code"], answer.json()["field"]) == ("name_taken", "name")


def test_tokens_of_others_are_not_there(as_alice: Client, bob: User) -> None:
    prefix = ApiToken.objects.get().prefix
    as_bob = caller(bob)

    assert as_bob.delete(f"/api/v1/tokens/{prefix}").status_code == 404
    assert [token["name"] for token in as_bob.get("/api/v1/tokens").json()["items"]] == ["script"]
    assert as_alice.get("/api/v1/me").status_code == 200


# ---- events and paging ---------------------------------------------------------------------------------------------


@pytest.fixture
def happenings(team_a: Tenant, charlie: User) -> None:
    """Five events in team A, one in another team."""
    for number in range(5):
        actions.record(system_actor("test"), f"thing.done{number}", team_a, tenant="team-a")
    actions.record(Actor(user=charlie, via="page"), "other.done", charlie, tenant="team-c")


def verbs(answer: HttpResponse) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [event["verb"] for event in answer.json()["items"]]


def test_members_see_the_events_of_their_team_and_their_own(happenings: None, bob: User, charlie: User) -> None:
    assert verbs(caller(bob).get("/api/v1/events")) == [
        "token.created",
        "thing.done4",
        "thing.done3",
        "thing.done2",
        "thing.done1",
        "thing.done0",
    ]
    assert verbs(caller(charlie).get("/api/v1/events")) == ["token.created", "other.done"]


def test_staff_see_all(happenings: None, dana: User) -> None:
    assert len(verbs(caller(dana).get("/api/v1/events"))) == 7


def test_events_are_filtered(happenings: None, dana: User, team_a: Tenant, cluster: Cluster) -> None:
    make.tenant(cluster, slug="team-c", namespace="team-c")
    as_dana = caller(dana)

    assert verbs(as_dana.get("/api/v1/events?team=team-c")) == ["other.done"]
    assert verbs(as_dana.get("/api/v1/events?verb=thing.done2")) == ["thing.done2"]
    assert len(verbs(as_dana.get(f"/api/v1/events?row=tenants.tenant.{team_a.pk}"))) == 5
    assert as_dana.get("/api/v1/events?team=%00").json()["field"] == "team"


def test_pages_follow_one_another_while_rows_appear(happenings: None, bob: User, team_a: Tenant) -> None:
    as_bob = caller(bob)
    first = as_bob.get("/api/v1/events?limit=2&team=team-a")
    actions.record(system_actor("test"), "thing.meanwhile", team_a, tenant="team-a")

    seen, next_url = verbs(first), first.json()["next"]
    while next_url:
        parts = urlsplit(next_url)
        assert (parts.scheme, parts.netloc, "team=team-a" in parts.query) == ("http", "testserver", True)
        page = as_bob.get(f"{parts.path}?{parts.query}")
        seen += verbs(page)
        next_url = page.json()["next"]

    assert seen == ["thing.done4", "thing.done3", "thing.done2", "thing.done1", "thing.done0"]


@pytest.mark.parametrize("limit", ["0", "201", "-1", "x", "", "1e2", "٣", "99999999999999"])
def test_a_limit_is_from_1_to_200(as_alice: Client, limit: str) -> None:
    answer = as_alice.get("/api/v1/events", {"limit": limit})

    assert (answer.status_code, answer.json()["code"]) == (422, "bad_limit")


@pytest.mark.parametrize(
    "cursor", ["x", "é", "AAAA", "WyItaWQiXQ", "WyItaWQiLG51bGxd", "WyItaWQiLCJ4Il0", "WyJpZCIsMV0", "bnVsbA", "%00"]
)
def test_a_made_up_cursor_is_refused(as_alice: Client, cursor: str) -> None:
    answer = as_alice.get("/api/v1/events", {"cursor": cursor})

    assert (answer.status_code, answer.json()["code"]) == (422, "bad_cursor")


# ---- OpenAPI contract ----------------------------------------------------------------------------------------------


def test_the_contract_is_public_and_complete(client: Client, db: None) -> None:
    answer = client.get("/api/v1/openapi.json")
    contract = json.loads(answer.content)

    assert contract["openapi"].startswith("3.1")
    for path, operations in contract["paths"].items():
        for method, operation in operations.items():
            assert operation.get("summary"), (method, path)
    refusal = contract["components"]["schemas"]["Refusal"]
    assert refusal["required"] == ["code", "message", "field"]
    assert {"not_found", "exceeds_grant"} < set(refusal["properties"]["code"]["enum"])
    assert {scheme["type"] for scheme in contract["components"]["securitySchemes"].values()} == {"http", "apiKey"}


def test_the_contract_is_valid_and_nothing_in_it_was_guessed(tmp_path: Path, db: None) -> None:
    call_command("spectacular", validate=True, fail_on_warn=True, file=str(tmp_path / "openapi.yaml"))


def test_lists_are_described_as_pages(client: Client, db: None) -> None:
    contract = json.loads(client.get("/api/v1/openapi.json").content)
    schemas = contract["components"]["schemas"]

    lists = {
        operation["operationId"]: operation["responses"]["200"]["content"]["application/json"]["schema"]["$ref"]
        for operations in contract["paths"].values()
        for operation in operations.values()
        if operation["operationId"].endswith("_list")
    }

    assert len(lists) >= 3
    for operation, reference in lists.items():
        assert schemas[reference.rpartition("/")[2]].get("required") == ["items", "next"], operation


def test_every_api_route_is_in_the_contract(client: Client, db: None) -> None:
    patterns = [str(one.pattern) for one in get_resolver().url_patterns]
    routes = {pattern for pattern in patterns if pattern.startswith("api/v1/")}
    paths = json.loads(client.get("/api/v1/openapi.json").content)["paths"]
    assert {route for route in routes if contract_of.path_of(route) not in paths} == set()
