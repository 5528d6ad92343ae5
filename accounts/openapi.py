"""What drf-spectacular cannot see: how callers prove who they are, and the one body of every refusal."""

from __future__ import annotations

import inspect
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension, OpenApiSerializerExtension
from drf_spectacular.openapi import AutoSchema

from accounts.known_query import parameters_of
from portal.codes import CODES

REFUSAL = {
    "type": "object",
    "description": "Why not. `code` is stable; `message` is for people; `field` names what to change, if anything.",
    "required": ["code", "message", "field"],
    "properties": {
        "code": {"type": "string", "enum": list(CODES), "examples": ["not_found", "exceeds_grant"]},
        "message": {"type": "string"},
        "field": {"type": ["string", "null"]},
    },
}
# What stands in an address is the same thing wherever it stands.
IN_PATHS = {
    "name": "Name that it has in the team.",
    "number": "Number of the run, as the list of runs has it.",
    "pk": "`id`, as the list has it.",
    "prefix": "What the token starts with, as the list has it.",
    "registry": "Host of the registry, with its port if it has one.",
    "slug": "Slug of a class.",
    "tenant": "Slug of a team.",
}
RETRY_AFTER = {"description": "Seconds to wait, where waiting helps.", "schema": {"type": "integer"}}


class Schema(AutoSchema):
    """The query parameters of a view are those that it takes (accounts/known_query.py)."""

    def get_override_parameters(self) -> list[Any]:
        return list(parameters_of(self.view, self.method))


class BearerScheme(OpenApiAuthenticationExtension):
    target_class = "accounts.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "A personal token, made on the page API tokens."}

    def get_security_requirement(self, auto_schema: Any) -> list[dict[str, list[str]]]:
        """With the scope that the token needs; of several one is enough."""
        from accounts.permissions import scopes_of

        return [{self.name: [str(scope)]} for scope in scopes_of(auto_schema.view, auto_schema.method.upper())]


class SessionScheme(OpenApiAuthenticationExtension):
    target_class = "accounts.authentication.SessionAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        from django.conf import settings

        description = "The browser's session; writes also need the header X-CSRFToken."
        return {"type": "apiKey", "in": "cookie", "name": settings.SESSION_COOKIE_NAME, "description": description}


class KnownFieldsExtension(OpenApiSerializerExtension):
    """What a body may not have is in the contract as well."""

    target_class = "accounts.known_fields.KnownFields"
    match_subclasses = True

    def map_serializer(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        from accounts.known_fields import KnownFields

        schema: dict[str, Any] = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        if schema.get("description") == inspect.getdoc(KnownFields):
            del schema["description"]  # what is said to who writes one, not to who sends one
        return {**schema, "additionalProperties": False}


def add_refusals(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """Every operation may be refused, always with the same body."""
    result.setdefault("components", {}).setdefault("schemas", {})["Refusal"] = REFUSAL
    refused = {
        "description": "Refused.",
        "headers": {"Retry-After": RETRY_AFTER},
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Refusal"}}},
    }
    for operations in result.get("paths", {}).values():
        for operation in operations.values():
            if isinstance(operation, dict) and "responses" in operation:
                operation["responses"].setdefault("default", refused)
    return result


def add_path_parameters(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """drf-spectacular asks the model of a view's queryset; ours have none. KeyError for an unknown name."""
    for operations in result.get("paths", {}).values():
        for operation in operations.values():
            for one in operation.get("parameters", []):
                if one["in"] == "path":
                    one["description"] = IN_PATHS[one["name"]]
    return result
