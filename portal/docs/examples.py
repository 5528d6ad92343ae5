"""Adds an example to every body of the contract, generated from its schema and the names of its fields."""

from __future__ import annotations

from typing import Any

DAY = "2027-01-31"
TIME = f"{DAY}T12:00:00Z"
# Field name → example, which a schema does not provide. A value whose type differs from the field's is not used.
EXAMPLES_BY_NAME: dict[str, Any] = {
    "actor": "alice@example.org",
    "as_of": TIME,
    "because": "The course is over.",
    "bundle": "starter",
    "by": "alice@example.org",
    "code": "not_found",
    "created_by": "alice@example.org",
    "delegate": "bob@example.org",
    "email": "bob@example.org",
    "ends_at": "2027-03-31T23:59:59Z",
    "exit_code": 0,
    "filed_by": "alice@example.org",
    "gpu_class": "a100-sxm4-80gb",
    "hours": 2,
    "image": "PyTorch 2.9",
    "justification": "Two GPUs for training the segmentation model.",
    "kind": "job",
    "message": "A sentence for people.",
    "name": "train",
    "month": "2027-01",
    "namespace": "team-a",
    "phase": "running",
    "prefix": "registry.example.org/vision/",
    "priority": "interactive",
    "purpose": "Segmentation of retina scans.",
    "reason": "A training run reads from it.",
    "registry": "registry.example.org",
    "request_id": "5f2a8c1e9b7d4f60",
    "requested_at": TIME,
    "role": "member",
    "row": "workloads.run.17",
    "scopes": "read",
    "script": "python train.py",
    "size_gib": 10,
    "slug": "a100-sxm4-80gb",
    "started_at": TIME,
    "team": "team-a",
    "tenants": "team-a",
    "text": "A sentence.",
    "title": "Requested",
    "token": "gpt_…",
    "unit": "GPU",
    "units": 2,
    "url": "https://portal.example.org/teams/team-a/workloads/train",
    "username": "robot",
    "value": "s3cr3t",
    "verb": "run.started",
    "via": "token udsqhhsz",
    "volume": "data",
    "wanted": "suspended",
}
# Optional fields that request examples contain.
OPTIONAL_SHOWN = {"ends_at", "role", "units"}
TYPES: dict[str, tuple[type, ...]] = {"string": (str,), "integer": (int,), "number": (int, float)}
UNKNOWN = "…"
FORMATS = {"date-time": TIME, "date": DAY, "uri": "https://portal.example.org/", "email": "bob@example.org"}
Schemas = dict[str, dict[str, Any]]


def add_examples(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """A hook of drf-spectacular. It must be the last one."""
    schemas: Schemas = result["components"]["schemas"]
    for operations in result["paths"].values():
        for operation in operations.values():
            for media in operation.get("requestBody", {}).get("content", {}).values():
                media["example"] = example_of(media["schema"], schemas, is_sent=True)
            for status, answer in operation["responses"].items():
                if status.startswith("2") and "application/json" in answer.get("content", {}):
                    media = answer["content"]["application/json"]
                    media["example"] = example_of(media["schema"], schemas)
    return result


def example_of(schema: dict[str, Any], schemas: Schemas, name: str = "", *, is_sent: bool = False) -> Any:
    """An example value of the schema. A request body has only its required fields (and OPTIONAL_SHOWN). The value is
    null if the schema allows null and there is no example for the name.
    """
    if "$ref" in schema:
        return example_of(schemas[schema["$ref"].rpartition("/")[2]], schemas, name, is_sent=is_sent)
    for choice in ("allOf", "oneOf", "anyOf"):
        if choice in schema:
            return None if {"type": "null"} in schema[choice] else example_of(schema[choice][0], schemas, name)
    if "enum" in schema:
        return EXAMPLES_BY_NAME[name] if EXAMPLES_BY_NAME.get(name) in schema["enum"] else schema["enum"][0]
    kinds = schema["type"] if isinstance(schema.get("type"), list) else [schema.get("type", "object")]
    named = EXAMPLES_BY_NAME.get(name)
    if isinstance(named, TYPES.get(kinds[0], ())) and len(str(named)) <= schema.get("maxLength", 1000):
        return named
    if "null" in kinds:
        return None
    if kinds[0] == "object":
        fields = schema.get("properties", {})
        wanted = {*schema.get("required", fields), *OPTIONAL_SHOWN} if is_sent else fields
        return {key: example_of(field, schemas, key, is_sent=is_sent) for key, field in fields.items() if key in wanted}
    if kinds[0] == "array":
        item = example_of(schema["items"], schemas, name, is_sent=is_sent)
        return [] if item == UNKNOWN and not schema.get("minItems") else [item]
    return _plain(kinds[0], schema)


def _plain(kind: str, schema: dict[str, Any]) -> Any:
    if kind == "boolean":
        return True
    if kind in ("integer", "number"):
        return max(schema.get("minimum", 1), 1)
    if "default" in schema:
        return schema["default"]
    return FORMATS.get(schema.get("format", ""), UNKNOWN if schema.get("minLength") else "")
