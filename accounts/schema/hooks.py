"""Hooks of drf-spectacular: the common body of all refusals, and the path parameters."""

from __future__ import annotations

from typing import Any

from drf_spectacular.plumbing import get_lib_doc_excludes

from accounts.schema.responses import HEADERS
from portal.core.codes import CODES

REFUSAL = {
    "type": "object",
    "description": "The reason. `code` is stable, `message` is for people, `field` names the field to change, if any.",
    "required": ["code", "message", "field"],
    "properties": {
        "code": {"type": "string", "enum": list(CODES), "examples": ["not_found", "exceeds_grant"]},
        "message": {"type": "string"},
        "field": {"type": ["string", "null"]},
    },
}

# Name in the code → name in the documentation.
DOCUMENTED_NAMES = {"pk": "id", "registry": "host", "tenant": "team"}
# A path parameter has the same meaning in every URL.
PATH_PARAMETERS = {
    "host": "Host of the registry, with its port if it has one.",
    "id": "`id`, as in the list.",
    "name": "Name within the team.",
    "number": "Number of the run, as in the list of runs.",
    "prefix": "Prefix of the token, as in the list.",
    "slug": "Slug of a class.",
    "team": "Slug of a team.",
}


def add_refusals(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """Every operation may be refused, always with the same body."""
    result.setdefault("components", {}).setdefault("schemas", {})["Refusal"] = REFUSAL
    refused = {
        "description": "Refused.",
        "headers": {"Retry-After": HEADERS["Retry-After"]},
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Refusal"}}},
    }
    for operations in result.get("paths", {}).values():
        for operation in operations.values():
            if isinstance(operation, dict) and "responses" in operation:
                operation["responses"].setdefault("default", refused)
    return result


def undocumented_bases() -> list[type]:
    """Base classes whose docstrings are for developers of the portal and must not appear in the contract."""
    from accounts.rest.strict.serializers import StrictSerializer
    from accounts.rest.verb_view import VerbView

    return [*get_lib_doc_excludes(), StrictSerializer, VerbView]


def add_path_parameters(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """drf-spectacular reads path parameters from the model of a view's queryset; our views have none. Raises KeyError
    for an unknown name.

    The code names some of them after models and keys; the contract names them as the documentation does.
    """
    for operations in result.get("paths", {}).values():
        for operation in operations.values():
            for one in operation.get("parameters", []):
                if one["in"] == "path":
                    one["name"] = DOCUMENTED_NAMES.get(one["name"], one["name"])
                    one["description"] = PATH_PARAMETERS[one["name"]]
    result["paths"] = {documented_path(path): found for path, found in result.get("paths", {}).items()}
    return result


def documented_path(path: str) -> str:
    for name, documented in DOCUMENTED_NAMES.items():
        path = path.replace(f"{{{name}}}", f"{{{documented}}}")
    return path
