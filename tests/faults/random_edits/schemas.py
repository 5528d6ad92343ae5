"""Values for any field of a Kubernetes object, drawn from the API server's own OpenAPI document."""

from __future__ import annotations

import functools
from typing import Any

from hypothesis import strategies as st

from devcluster.client.kube import Api

Json = dict[str, Any]
Schema = dict[str, Any]

DEPTH = 4
# Words for strings without an enumeration. Many fields accept only some of them: the API server decides.
WORDS = (
    "a",
    "nobody",
    "gpu-portal",
    "example.org/x",
    "10.0.0.0/8",
    "TCP",
    "1",
    "500m",
    "2Gi",
    "NoSchedule",
    "Equal",
    "",
)
QUANTITIES = ("0", "1", "3", "500m", "1Gi")
KEYS = ("example.org/x", "pods", "requests.nvidia.com/gpu", "kueue.x-k8s.io/x", "gpu-portal/other")


class Schemas:
    """The schemas of one API server."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._of_version = functools.cache(self._read)
        # A reference to an object that every cluster has. With another owner the garbage collector would delete the
        # edited object at any later moment.
        self.owner = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "view"}
        view = api.get("rbac.authorization.k8s.io/v1/clusterroles", "view")
        self.owner["uid"] = view["metadata"]["uid"]

    def of(self, body: Json) -> tuple[Schema, Json]:
        """Returns the schema of the object's kind, and all schemas of its API version by name."""
        version, kind = body["apiVersion"], body["kind"]
        known = self._of_version(version)
        group, _, bare = version.rpartition("/")
        for schema in known.values():
            for one in schema.get("x-kubernetes-group-version-kind") or ():
                if (one["group"], one["version"], one["kind"]) == (group, bare, kind):
                    return schema, known
        raise LookupError(f"no schema of {version} {kind}")

    def _read(self, version: str) -> Json:
        root = f"apis/{version}" if "/" in version else f"api/{version}"
        found: Json = self._api.request("GET", f"/openapi/v3/{root}")["components"]["schemas"]
        return found


def resolved(schema: Schema, known: Json) -> Schema:
    """Follows a reference, also one that stands alone in `allOf`."""
    while True:
        parts = schema.get("allOf") or ()
        target = schema.get("$ref") or (parts[0].get("$ref") if len(parts) == 1 else None)
        if not target:
            return schema
        name = target.rpartition("/")[2]
        schema = {**known[name], "x-name": name}


def values(schema: Schema, known: Json, depth: int = DEPTH) -> st.SearchStrategy[Any]:
    """Any value of this schema; deep optional parts are left out."""
    schema = resolved(schema, known)
    if schema.get("enum"):
        return st.sampled_from(schema["enum"])
    if schema.get("x-name", "").endswith("resource.Quantity"):
        return st.sampled_from(QUANTITIES)
    if schema.get("x-kubernetes-int-or-string") or "oneOf" in schema or "anyOf" in schema:
        return st.sampled_from([1, 80, "1", "500m"])
    match schema.get("type"):
        case "boolean":
            return st.booleans()
        case "integer" | "number":
            return st.integers(int(schema.get("minimum", 0)), int(schema.get("maximum", 200)))
        case "array":
            items = values(schema.get("items") or {}, known, depth - 1)
            return st.lists(items, max_size=2 if depth > 0 else 0)
        case "object":
            return _objects(schema, known, depth)
        case "string" if schema.get("format") == "date-time":
            return st.just("2026-11-21T09:00:00Z")
    return st.sampled_from(WORDS)


def _objects(schema: Schema, known: Json, depth: int) -> st.SearchStrategy[Json]:
    if below := schema.get("additionalProperties"):
        of_key = values(below, known, depth - 1) if isinstance(below, dict) else st.sampled_from(WORDS)
        return st.dictionaries(st.sampled_from(KEYS), of_key, max_size=2)
    properties = schema.get("properties") or {}
    required = set(schema.get("required") or ())
    if depth <= 0:
        properties = {name: one for name, one in properties.items() if name in required}
    parts = {name: values(one, known, depth - 1) for name, one in properties.items()}
    needed = {name: part for name, part in parts.items() if name in required}
    return st.fixed_dictionaries(needed, optional={name: part for name, part in parts.items() if name not in required})
