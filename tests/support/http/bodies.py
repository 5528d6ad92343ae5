"""Valid and invalid bodies for the API."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from accounts.models import User
from portal.docs import contract
from tests.support.http.visits import visit

Schema = dict[str, Any]

CONTRACT = json.loads(contract.contract_text())

SCHEMAS: dict[str, Schema] = CONTRACT["components"]["schemas"]


@cache
def bodies() -> dict[str, tuple[str, str, Schema]]:
    """By operation that may have a body: method, path and schema. An operation that needs no body takes no field."""
    return {
        operation["operationId"]: (method, path, _body_of(operation))
        for path, operations in CONTRACT["paths"].items()
        for method, operation in operations.items()
        if method != "get"
    }


def _body_of(operation: dict[str, Any]) -> Schema:
    none = {"type": "object", "properties": {}, "additionalProperties": False}
    body = operation.get("requestBody", {"content": {"application/json": {"schema": none}}})
    found: Schema = body["content"]["application/json"]["schema"]
    return found


def whole(schema: Schema) -> Schema:
    """Resolves references and single-schema wrappings."""
    for inner in [*schema.get("allOf", []), *schema.get("oneOf", [])][:1]:
        return whole(inner)
    if "$ref" in schema:
        return whole(SCHEMAS[schema["$ref"].rpartition("/")[2]])
    return schema


def kind_of(schema: Schema) -> str:
    kinds = schema.get("type", "")
    return kinds if isinstance(kinds, str) else next(kind for kind in kinds if kind != "null")


@dataclass(frozen=True)
class Call:
    who: User
    path: dict[str, str]
    body: dict[str, Any] = field(default_factory=dict)


def answer_of(who: User, operation: str, call: Call, body: Any) -> Any:
    method, path, _schema = bodies()[operation]
    team = f"?team={call.path['team']}" if "{team}" not in path and "team" in call.path else ""
    return visit(who).generic(
        method.upper(), path.format(**call.path) + team, json.dumps(body), content_type="application/json"
    )
