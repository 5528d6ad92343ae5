"""Prepares the contract for the reference page: operations by theme, fields by schema."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from portal.docs.curl_examples import V1, curl

# First parts of URLs, in the order of the pages; `teams/members` is of `teams` what is below a team's `members`. A part
# that is not listed comes last, under its own name.
THEMES = {
    "Workloads": ("workloads",),
    "Runs of workloads": (
        "workloads/runs",
        "workloads/restart",
        "workloads/priority",
        "workloads/extend",
        "idle-holders",
        "gpu-faults",
    ),
    "Volumes and secrets": ("volumes", "secrets", "registries"),
    "Quota requests": ("requests", "bundles", "team-requests", "trials"),
    "Teams": ("teams",),
    "Usage and budgets": (
        "teams/usage",
        "teams/usage-report",
        "teams/usage-report.csv",
        "teams/activity",
        "classes/activity",
        "operators/activity",
        "teams/budget",
        "workloads/activity",
    ),
    "Members and tokens of teams": (
        "teams/members",
        "teams/invitations",
        "teams/joins",
        "teams/tokens",
        "joins",
        "invitations",
    ),
    "Catalog and cluster": ("classes", "images", "capacity", "cluster", "search"),
    "Announcements": ("announcements", "operators/announcements"),
    "Approval and people": ("inbox", "delegations", "people"),
    "For operators": ("queue", "operators"),
    "Nodes: maintenance and measurements": ("maintenances", "mig-sets", "nodes"),
    "Adoption of namespaces": ("adoptions",),
    "Account": ("me", "tokens", "events"),
    "Contract": ("openapi.json",),
}
BOUNDS = {
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minimum": "from {}",
    "maximum": "to {}",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "maxProperties": "at most {} keys",
    "pattern": "pattern {}",
    "format": "{}",
    "default": "default {}",
}
# Not shown: the type already implies it, or it does not help the reader.
UNSAID = {("format", "double"), ("format", "int64"), ("minLength", 1), ("default", "")}
Part = dict[str, Any]


@dataclass(frozen=True)
class FieldDoc:
    name: str
    kind: str
    link: str  # name of the schema, which has its own table; "": a plain value
    bounds: str
    is_needed: bool
    text: str
    place: str = ""  # path, query or header


@dataclass(frozen=True)
class ResponseDoc:
    status: str
    text: str
    link: str
    headers: list[str]
    example: str


@dataclass(frozen=True)
class OperationDoc:
    id: str
    method: str
    path: str
    summary: str
    text: str
    scopes: list[str]  # one of them is enough; empty: no token
    parameters: list[FieldDoc]
    body: list[FieldDoc]
    answers: list[ResponseDoc]
    refusals: list[ResponseDoc]
    curl: str

    @property
    def curl_id(self) -> str:
        """Id of the HTML element with the curl call. The operation's own id is the target of links."""
        return f"curl-{self.id}"

    @property
    def short(self) -> str:
        return self.path.removeprefix(V1)


def operations_by_theme(contract: Part) -> dict[str, list[OperationDoc]]:
    """The operations of each theme, in the order of the first parts of their URLs (THEMES)."""
    by_tag: dict[str, list[OperationDoc]] = {}
    for path, operations in contract["paths"].items():
        for method, operation in operations.items():
            by_tag.setdefault(_place(path, operation), []).append(_operation(contract, method, path, operation))
    found = {title: [one for tag in tags for one in by_tag.pop(tag, [])] for title, tags in THEMES.items()}
    return {**found, **{tag.replace("-", " ").capitalize(): rest for tag, rest in by_tag.items()}}


def _place(path: str, operation: Part) -> str:
    tag, parts = str(operation["tags"][0]), path.removeprefix(f"{V1}/").split("/")
    # `teams/{team}/members` is teams/members, `operators/activity` is itself.
    names = [f"{tag}/{part}" for part in parts[1:3] if "{" not in part]
    return next((one for one in names if any(one in places for places in THEMES.values())), tag)


def fields_by_schema(contract: Part) -> dict[str, list[FieldDoc]]:
    """Every schema that responses link to, by name, with its fields."""
    schemas: dict[str, Part] = contract["components"]["schemas"]
    found = {}
    for name, schema in sorted(schemas.items()):
        if fields := schema.get("properties"):
            needed = schema.get("required", ())
            found[name] = [_field(schemas, key, one, key in needed) for key, one in fields.items()]
    return found


def _operation(contract: Part, method: str, path: str, operation: Part) -> OperationDoc:
    schemas: dict[str, Part] = contract["components"]["schemas"]
    media = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    told = [_answer(contract, status, answer) for status, answer in operation["responses"].items()]
    parameters = [
        _field(schemas, one["name"], one["schema"], one.get("required", False), one.get("description", ""), one["in"])
        for one in operation.get("parameters", [])
    ]
    scopes = [one["token"][0] for one in operation.get("security", []) if "token" in one]
    return OperationDoc(
        id=operation["operationId"],
        method=method.upper(),
        path=path,
        summary=operation["summary"],
        text=operation.get("description", "").rpartition("\n\n")[0],  # without the scopes
        scopes=scopes,
        parameters=parameters,
        body=list(_body(schemas, media.get("schema", {}))),
        answers=[one for one in told if one.status.startswith("2")],
        refusals=[one for one in told if not one.status.startswith("2")],
        curl=curl(method.upper(), path, body=media.get("example"), is_open=not scopes),
    )


def _answer(contract: Part, status: str, answer: Part) -> ResponseDoc:
    while "$ref" in answer:
        answer = contract["components"]["responses"][answer["$ref"].rpartition("/")[2]]
    media: Part = next(iter(answer.get("content", {}).values()), {})
    example = json.dumps(media["example"], indent=2, ensure_ascii=False) if "example" in media else ""
    is_refusal = not status.startswith("2")
    link = "" if is_refusal else _link(contract["components"]["schemas"], media.get("schema", {}))
    headers = [name for name in answer.get("headers", {}) if name != "X-Request-ID"]
    return ResponseDoc(status, answer.get("description", ""), link, headers, example)


def _body(schemas: dict[str, Part], schema: Part, path: str = "") -> Iterator[FieldDoc]:
    """The fields of a request body, including nested ones: `lines[].units`."""
    schema = _resolved(schemas, schema)
    for key, one in schema.get("properties", {}).items():
        if one.get("readOnly"):
            continue
        inner = _resolved(schemas, one)
        within, items = (f"{path}{key}[].", inner["items"]) if "items" in inner else (f"{path}{key}.", inner)
        yield _field(schemas, f"{path}{key}", one, key in schema.get("required", ()))
        yield from _body(schemas, items, within)


def _resolved(schemas: dict[str, Part], schema: Part) -> Part:
    """Resolves references and "schema or null", and keeps the keys beside them."""
    while True:
        choices = [one for one in schema.get("allOf") or schema.get("oneOf") or [] if one != {"type": "null"}]
        if "$ref" in schema:
            schema = {**schemas[schema["$ref"].rpartition("/")[2]], **{k: v for k, v in schema.items() if k != "$ref"}}
        elif choices:
            beside = {key: value for key, value in schema.items() if key not in ("allOf", "oneOf")}
            schema = {**choices[0], **beside}
        else:
            return schema


def _link(schemas: dict[str, Part], schema: Part) -> str:
    """The name of the schema of a field, or of each item of a list."""
    for one in [schema, schema.get("items", {}), *(schema.get("oneOf") or schema.get("allOf") or [])]:
        name = str(one.get("$ref", "")).rpartition("/")[2]
        if name and schemas[name].get("properties"):
            return name
    return ""


def _field(
    schemas: dict[str, Part], name: str, schema: Part, is_needed: bool, text: str = "", place: str = ""
) -> FieldDoc:
    whole = _resolved(schemas, schema)
    kinds = whole["type"] if isinstance(whole.get("type"), list) else [whole.get("type", "object")]
    kind = str(kinds[0])
    if kind == "array":
        inner = _resolved(schemas, whole.get("items", {}))
        kind = "list of " + (" · ".join(map(str, inner["enum"])) if "enum" in inner else str(inner.get("type", "")))
    elif "enum" in whole:
        kind = " · ".join(str(one) or "empty" for one in whole["enum"] if one is not None)
    may_be_null = "null" in kinds or {"type": "null"} in schema.get("oneOf", [])
    said = [
        words.format(_said(whole[key]))
        for key, words in BOUNDS.items()
        if key in whole and not isinstance(whole[key], list | dict) and (key, whole[key]) not in UNSAID
    ]
    return FieldDoc(
        name=name,
        kind=f"{kind} or null" if may_be_null else kind,
        link=_link(schemas, schema),
        bounds=", ".join(said),
        is_needed=is_needed,
        text=text or schema.get("description", ""),
        place=place,
    )


def _said(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    return f"{value:,}" if isinstance(value, int) else str(value)
