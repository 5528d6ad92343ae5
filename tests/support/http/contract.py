"""Checks every API answer, in any test, against the contract: its status, headers and body have to be documented."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock
from urllib.parse import urlencode

from django.http import HttpResponseBase
from django.test import Client
from django.urls import Resolver404
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from accounts.schema.hooks import documented_path
from portal.docs.contract import contract_text


@contextmanager
def kept() -> Iterator[None]:
    """Fails a test whose API calls through Django's client get an undocumented answer."""
    ask = Client.request

    def ask_and_look(self: Client, **request: Any) -> Any:
        answer = ask(self, **request)
        if found := breaches(request.get("REQUEST_METHOD", "GET"), answer):
            raise AssertionError("\n".join(found))
        return answer

    with mock.patch.object(Client, "request", ask_and_look):
        yield


def breaches(method: str, answer: HttpResponseBase) -> list[str]:
    """Returns differences between the answer and the contract, in both directions. For other pages: none."""
    try:
        route: str = answer.resolver_match.route  # type: ignore[attr-defined]
    except Resolver404:
        return []
    if not route.startswith("api/v1/"):
        return []
    operation = operation_of(method, route)
    if operation is None:  # OPTIONS, HEAD, or a method that the address does not have
        return []
    call, status = f"{operation['operationId']} answers {answer.status_code}", str(answer.status_code)
    if status not in operation["responses"]:
        return [f"{call}, which is not in the contract"]
    told = resolved(operation["responses"][status])
    found = [
        f"{call} without {name}"
        for name in ("X-Request-ID", "Location", "WWW-Authenticate")
        if name in told.get("headers", {}) and name not in answer.headers
    ]
    found += [
        f"{call} with {name}, which is not in the contract"
        for name in ("Location", "Retry-After", "WWW-Authenticate", "Idempotent-Replayed", "ETag")
        if name in answer.headers and name not in told.get("headers", {})
    ]
    kinds = told.get("content", {})
    if not kinds:
        return found + ([f"{call} with a body"] if answer.content else [])  # type: ignore[attr-defined]
    kind = answer.headers["Content-Type"].partition(";")[0]
    if kind not in kinds:
        return [*found, f"{call} as {kind}"]
    if not kind.endswith("json"):
        return found
    wrong = validator(json.dumps(kinds[kind]["schema"])).iter_errors(json.loads(answer.content))  # type: ignore[attr-defined]
    return found + [f"{call}: {one.json_path}: {one.message[:200]}" for one in wrong]


def operation_of(method: str, route: str) -> dict[str, Any] | None:
    """Returns None if the address does not have this method."""
    found: dict[str, Any] | None = contract()["paths"][path_of(route)].get(method.lower())
    return found


def path_of(route: str) -> str:
    """The path as the contract writes it: `api/v1/teams/<slug:tenant>` → `/api/v1/teams/{team}`."""
    return documented_path(re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", f"/{route}"))


def query_of(method: str, route: str, **values: str) -> str:
    """Returns `?` and those of the values that the call takes in its query, or "". For other pages: ""."""
    if not route.startswith("api/v1/"):
        return ""
    parameters = (operation_of(method, route) or {}).get("parameters", [])
    # The keys of `values` are parameter names of the routes, where a team is `tenant`.
    values = {"team" if name == "tenant" else name: value for name, value in values.items()}
    taken = {one["name"] for one in parameters if one["in"] == "query"} & values.keys()
    return f"?{urlencode({name: values[name] for name in sorted(taken)})}" if taken else ""


@functools.cache
def contract() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(contract_text())
    return found


def resolved(part: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in part:
        kind, name = part["$ref"].split("/")[-2:]
        part = contract()["components"][kind][name]
    return part


@functools.cache
def validator(schema: str) -> Draft202012Validator:
    whole = Resource(contents=contract(), specification=DRAFT202012)
    registry = Registry().with_resource("urn:contract", whole)
    return Draft202012Validator(json.loads(schema.replace('"#/', '"urn:contract#/')), registry=registry)
