"""Adds to each operation of the contract the responses that its view does not declare (refusals, headers), and two URLs
that are not DRF views.

The possible statuses follow from the parts of a call: with a path parameter, 404 is possible; with a body, 415. A view
declares other statuses itself, as `responses={…, 404: None}`.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from drf_spectacular.utils import OpenApiParameter

# For a view's `parameters=`: the Location header of its 201 response.
LOCATION = OpenApiParameter(
    "Location", str, OpenApiParameter.HEADER, response=[201], description="URL of the created object."
)
TEXTS = {
    "400": "The body is not JSON, is not an object, or a key appears twice in the body or in the query.",
    "401": "No token or session, or it is not valid.",
    "403": "The token lacks the scope, or your role does not allow it.",
    "404": "Not found, or not visible to you.",
    "409": "Conflict with the current state: it was changed in the meantime, or another step is required first.",
    "412": "It was changed after it was read, or created meanwhile. Read it again.",
    "413": "The body is larger than 1 MiB.",
    "415": "The body is not sent as `Content-Type: application/json`.",
    "422": "The request is not valid; `field` names the field.",
    "429": "Too many calls with this token.",
    "500": "Internal error. Give the `X-Request-ID` to an operator.",
    "503": "A service that the portal needs does not respond.",
}
# Also in refusals of calls that were counted, where only those of 429 say so.
RATE_LIMIT = ["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"]
WAITING_HELPS = {"409", "429", "503"}
HEADERS: dict[str, dict[str, Any]] = {
    "X-Request-ID": {
        "description": "Also in the portal's log and in the events of the call.",
        "schema": {"type": "string"},
    },
    "Retry-After": {
        "description": "Seconds to wait before a retry, if it can help.",
        "schema": {"type": "integer"},
    },
    "WWW-Authenticate": {"description": "`Bearer`.", "schema": {"type": "string"}},
    "RateLimit-Limit": {
        "description": "Calls that this token or session may make in a minute.",
        "schema": {"type": "integer"},
    },
    "RateLimit-Remaining": {"description": "Calls that are left in this minute.", "schema": {"type": "integer"}},
    "RateLimit-Reset": {"description": "Seconds until the next minute.", "schema": {"type": "integer"}},
    "Link": {"description": '`<URL>; rel="next"` if there is a next page.', "schema": {"type": "string"}},
    "Idempotent-Replayed": {
        "description": "`true`: this is the response to an earlier call with this key.",
        "schema": {"type": "string", "enum": ["true"]},
    },
}
REFUSAL_BODY = {"application/json": {"schema": {"$ref": "#/components/schemas/Refusal"}}}

DOCUMENT_TAG = {"schema": {"type": "string"}, "description": "Of the whole document."}
LENGTH_REQUIRED = "A body was sent without `Content-Length`; it was not read."

TEXT = {"schema": {"type": "string"}}
LOG_OK = "The log. With `Retry-After`: a sentence that says why there is none yet."
LOG_HEADERS = {
    "X-Log-Source": {
        "schema": {"type": "string", "enum": ["pod", "kept"]},
        "description": "`pod`: read from the cluster now. `kept`: what was kept when the run ended.",
    },
    "X-Log-Note": {**TEXT, "description": "Of a kept log: from when it is, and whether it is complete."},
    "X-Log-Expires-At": {
        "schema": {"type": "string", "format": "date-time"},
        "description": "When a kept log is deleted.",
    },
}

# These are not DRF views, so drf-spectacular does not describe them. Doors streams the log.
NON_DRF_OPERATIONS: dict[str, Any] = {
    "/api/v1/openapi.json": {
        "get": {
            "operationId": "contract_get",
            "summary": "Get this contract; it is the same for everyone and needs no token",
            "tags": ["openapi.json"],
            "parameters": [
                {
                    "in": "header",
                    "name": "If-None-Match",
                    "schema": {"type": "string"},
                    "description": "The `ETag` of an earlier response: 304 without a body if it is still the same.",
                }
            ],
            "responses": {
                "304": {"description": "Unchanged.", "headers": {"ETag": DOCUMENT_TAG}},
                "411": {"description": LENGTH_REQUIRED, "content": REFUSAL_BODY},
                "200": {
                    "description": "OK",
                    "headers": {"ETag": DOCUMENT_TAG},
                    "content": {"application/vnd.oai.openapi+json": {"schema": {"type": "object"}}},
                },
            },
        }
    },
    "/live/logs/{team}/{name}": {
        "get": {
            "operationId": "workloads_log",
            "summary": "Follow the log of a run as text, or read what was kept when it ended",
            "tags": ["workloads"],
            "security": [{"token": ["read"]}, {"session": []}],
            "parameters": [
                {"in": "path", "name": "team", "required": True, "schema": {"type": "string"}},
                {"in": "path", "name": "name", "required": True, "schema": {"type": "string"}},
                {
                    "in": "query",
                    "name": "follow",
                    "schema": {"type": "string", "enum": ["0", "1"], "default": "1"},
                    "description": "0: only the lines that exist now.",
                },
                {
                    "in": "query",
                    "name": "worker",
                    "schema": {"type": "integer", "minimum": 0, "maximum": 9999},
                    "description": "Worker of a job with several workers; default: the one that failed, or the first.",
                },
                {
                    "in": "query",
                    "name": "run",
                    "schema": {"type": "integer", "minimum": 1},
                    "description": "Number of the run; default: the last.",
                },
                {
                    "in": "query",
                    "name": "download",
                    "schema": {"type": "string", "enum": ["1"]},
                    "description": "The current lines, with a file name for browsers.",
                },
            ],
            "responses": {
                "200": {"description": LOG_OK, "headers": LOG_HEADERS, "content": {"text/plain": TEXT}},
                "401": {"description": TEXTS["401"], "content": REFUSAL_BODY},
                "404": {
                    "description": f"{TEXTS['404']} With the code `no_log`: the run has ended without a log.",
                    "content": REFUSAL_BODY,
                },
                "429": {
                    "description": "Too many logs are being followed.",
                    "headers": {"Retry-After": {"$ref": "#/components/headers/Retry-After"}},
                    "content": REFUSAL_BODY,
                },
            },
        }
    },
}


def add_responses(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """A hook of drf-spectacular. It must run after `add_refusals`, which adds the schema of the refusal."""
    components = result.setdefault("components", {})
    components["headers"] = HEADERS
    components["responses"] = {f"Refused{status}": _refusal(status) for status in TEXTS}
    for operations in result.get("paths", {}).values():
        for method, operation in operations.items():
            _complete(method, operation, components.get("schemas", {}))
    result["paths"] = dict(sorted({**result.get("paths", {}), **NON_DRF_OPERATIONS}.items()))
    return result


def refusal_statuses(method: str, operation: dict[str, Any], body: dict[str, Any]) -> set[str]:
    """The statuses that follow from the parts of a call. `body`: the fields of its request body."""
    found = {"400", "422", "429", "500", "503"}
    parameters = operation.get("parameters", [])
    named = {one["name"] for one in parameters}
    if operation.get("security"):
        found |= {"401", "403"}
    if "team" in named | body.keys() or any(one["in"] == "path" for one in parameters):
        found.add("404")
    if method != "get":  # also without a declared body: a body that is sent is still parsed
        found |= {"409", "413", "415"}
    if named & {"If-Match", "If-None-Match"}:
        found.add("412")
    return found


def _complete(method: str, operation: dict[str, Any], schemas: dict[str, Any]) -> None:
    sent = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    body = schemas.get(sent.get("$ref", "").rpartition("/")[2], {}).get("properties", {})
    answers, named = operation["responses"], {one["name"] for one in operation.get("parameters", [])}
    for status in refusal_statuses(method, operation, body) | (answers.keys() & TEXTS.keys()):
        answers[status] = {"$ref": f"#/components/responses/Refused{status}"}
    for status, answer in answers.items():
        if status.startswith("2"):
            answer["description"] = answer.get("description") or HTTPStatus(int(status)).phrase
            headers = ["X-Request-ID"]
            headers += ["Idempotent-Replayed"] if "Idempotency-Key" in named else []
            headers += ["Retry-After"] if "wait" in named else []
            headers += ["Link"] if "cursor" in named else []
            headers += RATE_LIMIT if operation.get("security") else []
            answer.setdefault("headers", {}).update({name: _header(name) for name in headers})
    operation["responses"] = dict(sorted(answers.items()))


def _refusal(status: str) -> dict[str, Any]:
    names = ["X-Request-ID"]
    names += ["Retry-After"] if status in WAITING_HELPS else []
    names += ["WWW-Authenticate"] if status == "401" else []
    names += RATE_LIMIT if status == "429" else []
    return {
        "description": TEXTS[status],
        "headers": {name: _header(name) for name in names},
        "content": REFUSAL_BODY,
    }


def _header(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/headers/{name}"}
