"""The contract lists each call's possible answers. tests/support/http/contract.py checks every test's answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.http import JsonResponse
from django.test import Client
from django.urls import resolve

from accounts.models import Scope, User
from accounts.schema.responses import NON_DRF_OPERATIONS, refusal_statuses
from tests.support.http import contract
from tests.support.http.callers import caller


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in contract.contract()["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def test_what_a_call_is_made_of_says_what_it_may_meet() -> None:
    secured = {"security": [{"token": ["read"]}], "parameters": []}
    everybody = {"400", "401", "403", "422", "429", "500", "503"}
    assert refusal_statuses("get", secured, {}) == everybody
    body = everybody | {"409", "413", "415"}
    assert refusal_statuses("delete", {**secured, "parameters": [{"in": "path", "name": "pk"}]}, {}) == body | {"404"}
    assert refusal_statuses("post", secured, {}) == body
    assert refusal_statuses("put", {**secured, "requestBody": {}}, {"name": {}}) == body
    assert refusal_statuses("put", {**secured, "requestBody": {}}, {"team": {}}) == body | {"404"}
    assert "412" in refusal_statuses("put", {**secured, "parameters": [{"in": "header", "name": "If-Match"}]}, {})


def test_every_call_names_its_scope_its_refusals_and_the_id_of_the_request() -> None:
    for path, _method, operation in operations():
        if path in NON_DRF_OPERATIONS:
            continue
        assert operation["security"][0]["token"][0] in Scope.values, path
        assert {"401", "403", "429", "503"} <= operation["responses"].keys(), path
        for status, answer in operation["responses"].items():
            assert status == "default" or "X-Request-ID" in contract.resolved(answer)["headers"], (path, status)
            assert contract.resolved(answer)["description"], (path, status)


def test_the_scope_named_is_the_scope_asked(alice: User) -> None:
    by_id = {operation["operationId"]: operation for _path, _method, operation in operations()}
    assert by_id["workloads_list"]["security"][0] == {"token": ["read"]}
    assert by_id["workloads_launch"]["security"][0] == {"token": ["launch"]}
    assert by_id["requests_comment"]["security"][:2] == [{"token": ["request"]}, {"token": ["decide"]}]
    assert by_id["tokens_revoke"]["security"][0] == {"token": ["admin"]}


def test_the_contract_and_the_log_stand_in_the_contract() -> None:
    assert {"/api/v1/openapi.json", "/live/logs/{team}/{name}"} <= contract.contract()["paths"].keys()
    assert resolve("/live/logs/team-a/one").url_name == "workload-log"


@pytest.mark.parametrize(
    ("answer", "breach"),
    [
        (JsonResponse({}, status=418), "me answers 418, which is not in the contract"),
        (JsonResponse({"email": 1}, status=200, headers={"X-Request-ID": "x"}), "me answers 200: $.email: 1 is not"),
        (JsonResponse({"code": "x", "message": "x", "field": None}, status=429), "me answers 429 without X-Request-ID"),
        (JsonResponse({}, status=403, headers={"Retry-After": "1"}), "me answers 403 with Retry-After, which is not"),
    ],
)
def test_an_answer_that_the_contract_does_not_know_is_a_breach(answer: JsonResponse, breach: str) -> None:
    answer.resolver_match = resolve("/api/v1/me")  # type: ignore[attr-defined]
    assert any(one.startswith(breach) for one in contract.breaches("GET", answer))


def test_the_tests_clients_look_at_what_is_answered(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the entry for 404, a call that gets a 404 fails its test."""
    client = caller(alice)
    told = contract.contract()["paths"]["/api/v1/requests/{id}"]["get"]["responses"]
    assert client.get("/api/v1/requests/1").status_code == 404
    monkeypatch.delitem(told, "404")
    with pytest.raises(AssertionError, match="requests_get answers 404, which is not in the contract"):
        client.get("/api/v1/requests/1")
    assert Client().get("/api/v1/requests/1").status_code == 401
