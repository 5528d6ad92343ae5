"""Programs that call the API with a token of somebody."""

from __future__ import annotations

import json
from typing import Any

from django.test import Client

from accounts.api_tokens import actions
from accounts.core.actor import Actor
from accounts.models import Scope, User


def bearer(user: User, *scopes: str) -> dict[str, str]:
    """Headers; all scopes unless told otherwise."""
    by, name = Actor(user=user, via="page"), f"script {user.tokens.count() or ''}"
    _row, text = actions.create_token(name=name, scopes=scopes or list(Scope), expires_in_days=7, by=by)
    return {"Authorization": f"Bearer {text}"}


def caller(user: User, *scopes: str) -> Client:
    return Client(headers=bearer(user, *scopes))


def send(client: Client, method: str, path: str, body: Any = None) -> Any:
    return client.generic(method, path, json.dumps(body or {}), content_type="application/json")
