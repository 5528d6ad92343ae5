"""Describes authentication, query parameters and strict bodies to drf-spectacular."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension, OpenApiSerializerExtension
from drf_spectacular.openapi import AutoSchema

from accounts.rest.strict.query import parameters_of


class PortalAutoSchema(AutoSchema):
    """Documents the query parameters that a view accepts (accounts/rest/strict/query.py)."""

    def get_override_parameters(self) -> list[Any]:
        return list(parameters_of(self.view, self.method))


class BearerScheme(OpenApiAuthenticationExtension):
    target_class = "accounts.api_tokens.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "A token from the API tokens page."}

    def get_security_requirement(self, auto_schema: Any) -> list[dict[str, list[str]]]:
        """Includes the scopes of the view; a token needs one of them."""
        from accounts.rest.permissions import scopes_of

        return [{self.name: [str(scope)]} for scope in scopes_of(auto_schema.view, auto_schema.method.upper())]


class SessionScheme(OpenApiAuthenticationExtension):
    target_class = "accounts.api_tokens.authentication.SessionAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        from django.conf import settings

        description = "The browser's session; writes also need the header X-CSRFToken."
        return {"type": "apiKey", "in": "cookie", "name": settings.SESSION_COOKIE_NAME, "description": description}


class StrictSerializerExtension(OpenApiSerializerExtension):
    """Adds `additionalProperties: false` to strict bodies in the contract."""

    target_class = "accounts.rest.strict.serializers.StrictSerializer"
    match_subclasses = True

    def map_serializer(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        schema: dict[str, Any] = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        return {**schema, "additionalProperties": False}
