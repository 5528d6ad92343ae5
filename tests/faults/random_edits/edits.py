"""One random edit of an object: any field that its schema knows is added, changed or removed, by any writer."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from cluster.manifests.metadata import OWNER_LABEL
from cluster.mirror.records.types import MANAGED_LABEL
from devcluster.client.kube import APPLY, Api, path_of
from tests.faults.random_edits.schemas import KEYS, Json, Schema, Schemas, resolved, values
from tests.faults.scenes import Key
from tests.support.waiting import wait_until

JSON_PATCH = "application/json-patch+json"
WRITERS = ("kubectl-edit", "kubectl-client-side-apply", "argocd-controller", "kubectl")
# What the API server itself sets, or what identifies the object.
OF_THE_SERVER = {"apiVersion", "kind", "status"}
METADATA = ("labels", "annotations", "ownerReferences")
LABELS = (
    *KEYS,
    OWNER_LABEL,
    MANAGED_LABEL,
    "pod-security.kubernetes.io/audit",
    "pod-security.kubernetes.io/enforce-version",
    "kueue.x-k8s.io/queue-name",
)


@dataclass(frozen=True)
class Edit:
    """`patch`: JSON patch operations on the object as it is; none means that the object is deleted. `is_applied`: the
    edited object is sent by server-side apply with force, otherwise the patch itself is.
    """

    patch: tuple[Json, ...] = ()
    writer: str = WRITERS[0]
    is_applied: bool = False

    def __str__(self) -> str:
        if not self.patch:
            return "deleted"
        how = "applied" if self.is_applied else "patched"
        done = ", ".join(f"{one['op']} {one['path']} {one.get('value', '')!r}" for one in self.patch)
        return f"{how} by {self.writer}: {done}"

    def send(self, api: Api, resource: str, body: Json) -> object:
        """Raises ApiError if the API server refuses the edit."""
        metadata = body["metadata"]
        name, namespace = metadata["name"], metadata.get("namespace", "")
        path = path_of(resource, name, namespace=namespace)
        if not self.patch:
            api.delete(resource, name, namespace=namespace)
            return wait_until(lambda: api.find(resource, name, namespace=namespace) is None)
        if self.is_applied:
            whole = _as_file(_patched(body, self.patch))
            params = {"fieldManager": self.writer, "force": "true"}
            return api.request("PATCH", path, whole, params=params, content_type=APPLY)
        operations: Any = list(self.patch)
        return api.request("PATCH", path, operations, params={"fieldManager": self.writer}, content_type=JSON_PATCH)


@dataclass
class _Walk:
    """Goes down from the root of an object and stops at a random place."""

    draw: Any
    known: Json
    path: list[str] = field(default_factory=list)

    def into(self, schema: Schema, value: Any) -> tuple[Json, ...]:
        schema = resolved(schema, self.known)
        if isinstance(value, list):
            return self._list(schema, value)
        if isinstance(value, dict):
            return self._map(schema, value)
        return self._at(schema, value)

    def _map(self, schema: Schema, value: Json) -> tuple[Json, ...]:
        below = schema.get("additionalProperties")
        properties = schema.get("properties") or {}
        if self.path == []:
            names = [name for name in sorted({*properties, *value}) if name not in OF_THE_SERVER]
        elif self.path == ["metadata"]:
            names = list(METADATA)
        elif self.path in (["metadata", "labels"], ["metadata", "annotations"]):
            names = sorted({*LABELS, *value})
        elif below or not properties:
            names = sorted({*KEYS, *value})
        else:
            names = sorted({*properties, *value})
        name = self.draw(st.sampled_from(names))
        inside = properties.get(name) or (below if isinstance(below, dict) else {"type": "string"})
        self.path.append(name)
        return self._at(inside, value[name]) if name in value else self._add(inside)

    def _list(self, schema: Schema, value: list[Any]) -> tuple[Json, ...]:
        items = schema.get("items") or {}
        place = self.draw(st.integers(0, len(value)))
        if place == len(value):
            self.path.append("-")
            return self._add(items)
        self.path.append(str(place))
        return self._at(items, value[place])

    def _at(self, schema: Schema, value: Any) -> tuple[Json, ...]:
        goes_on = isinstance(value, dict | list) and (len(self.path) < 2 or self.draw(st.integers(0, 3)) > 0)
        if goes_on:
            return self.into(schema, value)
        # Metadata as a whole, or a whole spec, is replaced by nobody.
        if self.draw(st.integers(0, 2)) == 0:
            return ({"op": "remove", "path": self._pointer()},)
        return ({"op": "replace", "path": self._pointer(), "value": self._value(schema)},)

    def _add(self, schema: Schema) -> tuple[Json, ...]:
        return ({"op": "add", "path": self._pointer(), "value": self._value(schema)},)

    def _value(self, schema: Schema) -> Any:
        if self.path[:2] in (["metadata", "labels"], ["metadata", "annotations"]) and len(self.path) == 3:
            return self.draw(st.sampled_from(["privileged", "gpu-portal", "v1.20", "x"]))
        return self.draw(values(schema, self.known))

    def _pointer(self) -> str:
        return "".join(f"/{step.replace('~', '~0').replace('/', '~1')}" for step in self.path)


@st.composite
def edits(draw: Any, schemas: Schemas, objects: dict[Key, Json]) -> tuple[Key, Edit]:
    """An edit of one of these objects. Many are refused by the API server, since a schema does not say everything."""
    key = draw(st.sampled_from(sorted(objects)))
    body = objects[key]
    if body["kind"] != "Namespace" and draw(st.integers(0, 39)) == 0:
        return key, Edit()
    schema, known = schemas.of(body)
    walk = _Walk(draw, known)
    patch = walk.into(schema, body)
    if walk.path[:2] == ["metadata", "ownerReferences"]:
        patch = ({"op": "add", "path": "/metadata/ownerReferences", "value": [schemas.owner]},)
    return key, Edit(patch, draw(st.sampled_from(WRITERS)), draw(st.integers(0, 4)) == 0)


def _as_file(body: Json) -> Json:
    """The object as somebody would have it in a file."""
    metadata = {key: body["metadata"][key] for key in ("name", "namespace", *METADATA) if key in body["metadata"]}
    return {**{key: one for key, one in body.items() if key != "status"}, "metadata": metadata}


def _patched(body: Json, patch: tuple[Json, ...]) -> Json:
    found = copy.deepcopy(body)
    for one in patch:
        *above, last = (step.replace("~1", "/").replace("~0", "~") for step in one["path"][1:].split("/"))
        into: Any = found
        for step in above:
            into = into[int(step)] if isinstance(into, list) else into.setdefault(step, {})
        if isinstance(into, list):
            _patch_list(into, last, one)
        elif one["op"] == "remove":
            del into[last]
        else:
            into[last] = one["value"]
    return found


def _patch_list(into: list[Any], last: str, one: Json) -> None:
    if last == "-":
        into.append(one["value"])
    elif one["op"] == "remove":
        del into[int(last)]
    else:
        into[int(last)] = one["value"]
