"""Programs that call the API with a user's token."""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpResponse
from django.test import Client

from accounts.api_tokens import actions
from accounts.core.actor import Actor
from accounts.models import Scope, User
from tests.support.rows import make


def bearer(user: User, *scopes: str) -> dict[str, str]:
    """Returns the headers; the token has all scopes by default. Scope admin requires a second factor."""
    if not scopes or Scope.ADMIN in scopes:
        make.second_factor(user)
    by, name = Actor(user=user, via="page"), f"script {user.tokens.count() or ''}"
    _row, text = actions.create_token(name=name, scopes=scopes or list(Scope), expires_in_days=7, by=by)
    return {"Authorization": f"Bearer {text}"}


def caller(user: User, *scopes: str) -> Client:
    return Client(headers=bearer(user, *scopes))


def send(client: Client, method: str, path: str, body: Any = None) -> Any:
    return client.generic(method, path, json.dumps(body or {}), content_type="application/json")


class CatalogCaller:
    """A client with a token of scope read."""

    def __init__(self, user: User) -> None:
        self.headers = bearer(user, "read")

    def __call__(self, path: str) -> Any:
        return Client().get(f"/api/v1{path}", headers=self.headers)

    def items(self, path: str) -> list[dict[str, Any]]:
        answer = self(path)
        assert answer.status_code == 200, answer.json()
        return list(answer.json()["items"])


def told(answer: Any) -> tuple[int, str, str | None]:
    return answer.status_code, answer.json()["code"], answer.json()["field"]


def post(client: Client, path: str, body: Any = None) -> HttpResponse:
    return client.post(path, json.dumps(body or {}), content_type="application/json")


class WorkloadsCaller:
    """A client with a token."""

    def __init__(self, user: User, scopes: list[str]) -> None:
        self.headers = bearer(user, *scopes)

    def __call__(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        text = json.dumps(body) if body is not None else ""
        address = f"/api/v1/workloads{path}"
        return Client().generic(method, address, text, content_type="application/json", headers=self.headers)
