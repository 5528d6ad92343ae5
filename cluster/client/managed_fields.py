"""Finds out from managedFields who wrote which fields of one of our objects. Pure.

A field of another writer counts if we do not own it too (equal values are shared ownership) and if it is not the
cluster's own bookkeeping: status, finalizers, foreign labels and annotations, the volume that a claim was bound to. A
*removed* field has no owner any more: the only sign is that we own fewer fields although we did not write and the value
is another one, so the mirror keeps how many fields are ours, a digest of their values and when we last wrote.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cluster.manifests.adoption.labels import ADOPT_LABEL, BEFORE_ANNOTATION

OWN_MANAGER = "gpu-portal"
FIELDS_SHOWN = 20
# The field that differs if an object has lost its managedFields: nobody knows what else was changed.
UNTRACKED = "metadata.managedFields"
# Subresources that only the cluster's own controllers write.
SYSTEM_SUBRESOURCES = ("status", "finalize")
_SYSTEM_PATHS = ("status", "metadata.finalizers", "metadata.generateName", "spec.volumeName")
_KEY_HOLDERS = {"metadata.labels", "metadata.annotations"}
# Labels and annotations with a meaning for the portal or the cluster's policies; all others belong to their writers.
_MEANINGFUL_KEYS = ("gpu-portal/", "app.kubernetes.io/managed-by", "pod-security.kubernetes.io/", "kueue.x-k8s.io/")
_ADOPTION_KEYS = {ADOPT_LABEL, BEFORE_ANNOTATION}


@dataclass(frozen=True, slots=True)
class FieldOwnership:
    """`groups`: how many fields are ours, by their first two levels ("spec.hard"). `fields`, `manager`, `since`: what
    others wrote, the last other writer and its time (ISO text). `values`: a digest of each value at these two levels,
    whoever owns it.
    """

    written_at: str
    groups: dict[str, int]
    values: dict[str, str] = field(default_factory=dict)
    fields: tuple[str, ...] = ()
    manager: str = ""
    since: str = ""

    def baseline(self) -> dict[str, Any]:
        """The part that the mirror row keeps. `removed_since` compares with it, and it changes the row's digest when
        another writer adds a field that the record does not have.
        """
        values = {group: self.values[group] for group in self.groups if group in self.values}
        return {"written_at": self.written_at, "groups": self.groups, "values": values, "others": list(self.fields)}

    def removed_since(self, baseline: dict[str, Any] | None) -> tuple[str, ...]:
        """Returns groups of our fields that became fewer although we have not written since `baseline`.

        Our writes are dated to the second, so two of them may look like one. The second often owns less where nothing
        was removed: the API server counts the defaults that it set at the creation as ours, an apply does not. An
        empty "spec" that others left us may be full again at the same time. An earlier time is no write: an entry of
        ours that lost all of its fields is gone, and the one that is left may have none, since an apply that changes
        nothing is not dated.
        """
        if not baseline or self.written_at > baseline["written_at"]:
            return ()
        before, values = baseline["groups"], baseline["values"]
        fewer = {group for group in before if self.groups.get(group, 0) < before[group]}
        fewer -= {group for group in fewer if group in values and values[group] == self.values.get(group)}
        return tuple(sorted(one for one in fewer if not any(now.startswith(f"{one}.") for now in self.groups)))


def field_ownership(
    managed_fields: Iterable[dict[str, Any]], body: Mapping[str, Any] | None = None
) -> FieldOwnership | None:
    """Returns None if no entry is ours: the portal did not write the object, whatever its labels say. Without `body`
    there are no `values`.
    """
    entries = list(managed_fields)
    ours: set[str] = set()
    maps = {*_KEY_HOLDERS}
    written_at = ""
    for entry in entries:
        if entry.get("manager") == OWN_MANAGER:
            for path, has_leaves in _nodes(entry.get("fieldsV1") or {}):
                (maps if has_leaves else ours).add(path)
            written_at = max(written_at, entry.get("time") or "")
    if not ours:
        return None
    fields: set[str] = set()
    manager = since = ""
    for entry in entries:
        if entry.get("manager") == OWN_MANAGER or entry.get("subresource") in SYSTEM_SUBRESOURCES:
            continue
        theirs = {path for path in field_paths(entry.get("fieldsV1") or {}) if path not in ours and is_drift(path)}
        fields |= theirs
        if theirs and (entry.get("time") or "") >= since:
            manager, since = entry.get("manager", ""), entry.get("time") or ""
    # The creator of a map owns the map as well. When its leaves are removed, the map itself looks like a leaf and would
    # replace one in the count.
    values = _values(body or {})
    return FieldOwnership(
        written_at, _groups(ours - maps), values, tuple(sorted(fields)[:FIELDS_SHOWN]), manager, since
    )


def has_stale_fields(managed_fields: Iterable[dict[str, Any]]) -> bool:
    """True if our `Update` entry has a field that our `Apply` entry lacks: the current manifest no longer has it."""
    ours: dict[str, set[str]] = {"Apply": set(), "Update": set()}
    for entry in managed_fields:
        if _is_ours(entry):
            ours[entry["operation"]].update(field_paths(entry.get("fieldsV1") or {}))
    return bool(ours["Update"] - ours["Apply"])


def as_applied_patch(managed_fields: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns a JSON patch that makes one `Apply` entry of our `Update` and `Apply` entries; [] without an `Update`.

    It has the fields of both: with those of one alone, the others would look removed until the next apply.
    """
    found = {entry["operation"]: (place, entry) for place, entry in enumerate(managed_fields) if _is_ours(entry)}
    if "Update" not in found:
        return []
    entries = [entry for _place, entry in found.values()]
    made = {
        **found["Update"][1],
        "operation": "Apply",
        "fieldsV1": _union([one.get("fieldsV1") or {} for one in entries]),
    }
    made["time"] = max(entry.get("time") or "" for entry in entries)
    path = "/metadata/managedFields/{}".format
    patch = [{"op": "test", "path": path(place), "value": entry} for place, entry in found.values()]
    patch.append({"op": "replace", "path": path(found["Update"][0]), "value": made})
    if "Apply" in found:
        patch.append({"op": "remove", "path": path(found["Apply"][0])})
    return patch


def _union(trees: list[dict[str, Any]]) -> dict[str, Any]:
    """Merges FieldsV1 trees. A map that is a leaf in one of them is kept as owned itself."""
    keys = dict.fromkeys(key for tree in trees for key in tree)
    below = {key: [tree[key] for tree in trees if key in tree] for key in keys}
    merged = {key: _union(found) for key, found in below.items()}
    return {key: {".": {}, **fields} if fields and {} in below[key] else fields for key, fields in merged.items()}


def _is_ours(entry: dict[str, Any]) -> bool:
    return entry.get("manager") == OWN_MANAGER and not entry.get("subresource")


def field_paths(fields: dict[str, Any]) -> Iterator[str]:
    """Leaves of a FieldsV1 tree as text: `spec.hard.requests.nvidia.com/gpu`, `spec.ports[{"port":80}].name`."""
    return (path for path, has_leaves in _nodes(fields) if not has_leaves)


def _nodes(fields: dict[str, Any], above: str = "") -> Iterator[tuple[str, bool]]:
    """Yields each path, and whether there are paths below it."""
    for key, below in fields.items():
        if key == ".":
            continue
        sort, _, name = key.partition(":")
        here = f"{above}[{name}]" if sort in ("k", "v", "i") else f"{above}.{name}" if above else name
        has_leaves = bool(below) and set(below) != {"."}
        yield here, has_leaves
        if has_leaves:
            yield from _nodes(below, here)


def writer_of(path: str, managed_fields: Iterable[dict[str, Any]]) -> dict[str, Any] | None:
    """Returns the entry of the last writer of this field; None if the cluster does not report one."""
    found = [entry for entry in managed_fields if path in field_paths(entry.get("fieldsV1") or {})]
    return max(found, key=lambda entry: entry.get("time") or "", default=None)


def is_drift(path: str) -> bool:
    """False for the cluster's own bookkeeping, and for labels and annotations without a meaning for the portal."""
    for holder in _KEY_HOLDERS:
        if path == holder or path.startswith(f"{holder}."):
            key = path[len(holder) + 1 :]
            return key.startswith(_MEANINGFUL_KEYS) and key not in _ADOPTION_KEYS
    return not any(path == known or path.startswith((f"{known}.", f"{known}[")) for known in _SYSTEM_PATHS)


def _values(body: Mapping[str, Any]) -> dict[str, str]:
    labels = {"metadata": {name: body["metadata"].get(name) for name in ("labels", "annotations")}} if body else {}
    found: dict[str, Any] = {}
    for name, value in {**body, **labels}.items():
        if name == "status":
            continue
        found |= {f"{name}.{key}": one for key, one in value.items()} if isinstance(value, dict) else {name: value}
    return {
        name: hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=4).hexdigest()
        for name, value in found.items()
    }


def _groups(leaves: set[str]) -> dict[str, int]:
    return dict(Counter(".".join(path.split(".")[:2]) for path in sorted(leaves)))
