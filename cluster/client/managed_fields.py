"""Who wrote which fields of one of our objects, from its managedFields. Pure.

Another writer's field counts when we do not own it too (equal values are shared ownership) and when it is not the
cluster's own bookkeeping: status, finalizers, foreign labels and annotations, the volume that a claim was bound to. A
field that somebody *removed* has no owner any more: it can only be noticed because we own fewer fields although we did
not write, so the mirror keeps how many fields are ours and when we last wrote.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

OWN_MANAGER = "gpu-portal"
FIELDS_SHOWN = 20
# Subresources that only the cluster's own controllers write.
_SYSTEM_SUBRESOURCES = ("status", "finalize")
_SYSTEM_PATHS = ("status", "metadata.finalizers", "metadata.generateName", "spec.volumeName")
_KEY_HOLDERS = {"metadata.labels", "metadata.annotations"}
# Labels and annotations that mean something to us or to the cluster's rules; all others are their writers' business.
_MEANINGFUL_KEYS = ("gpu-portal/", "app.kubernetes.io/managed-by", "pod-security.kubernetes.io/", "kueue.x-k8s.io/")


@dataclass(frozen=True, slots=True)
class FieldOwnership:
    """`groups`: how many fields are ours, by their first two levels ("spec.hard"). `fields`, `manager`, `since`: what
    others wrote, who wrote last and when (ISO text).
    """

    written_at: str
    groups: dict[str, int]
    fields: tuple[str, ...] = ()
    manager: str = ""
    since: str = ""

    def baseline(self) -> dict[str, Any]:
        """What the mirror row keeps: to be compared with by `removed_since`, and so that a field that others added and
        no record shows makes the row another one.
        """
        return {"written_at": self.written_at, "groups": self.groups, "others": list(self.fields)}

    def removed_since(self, baseline: dict[str, Any] | None) -> tuple[str, ...]:
        """Groups of our fields that became fewer although we have not written since `baseline`.

        Our writes are dated to the second: an empty "spec" that others left us may be full again at the same time.
        """
        if not baseline or baseline["written_at"] != self.written_at:
            return ()
        before = baseline["groups"]
        fewer = {group for group in before if self.groups.get(group, 0) < before[group]}
        return tuple(sorted(one for one in fewer if not any(now.startswith(f"{one}.") for now in self.groups)))


def field_ownership(managed_fields: Iterable[dict[str, Any]]) -> FieldOwnership | None:
    """None when nobody is on record for us: the object was not written by the portal, whatever its labels say."""
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
        if entry.get("manager") == OWN_MANAGER or entry.get("subresource") in _SYSTEM_SUBRESOURCES:
            continue
        theirs = {path for path in field_paths(entry.get("fieldsV1") or {}) if path not in ours and _matters(path)}
        fields |= theirs
        if theirs and (entry.get("time") or "") >= since:
            manager, since = entry.get("manager", ""), entry.get("time") or ""
    # Who created a map owns it as well. It looks like a leaf once its own leaves are removed, and would stand for one
    # of them: the number would stay the same.
    return FieldOwnership(written_at, _groups(ours - maps), tuple(sorted(fields)[:FIELDS_SHOWN]), manager, since)


def removal_patch(managed_fields: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """A merge patch that takes out what others added and we do not send; {} when there is nothing of the kind.

    An apply sets back what we send, and leaves the rest to whoever wrote it. Items of keyed lists are left as well: a
    merge patch cannot name them.
    """
    entries = list(managed_fields)
    ours = {
        path
        for entry in entries
        if entry.get("manager") == OWN_MANAGER
        for path in field_paths(entry.get("fieldsV1") or {})
    }
    patch: dict[str, Any] = {}
    for entry in entries:
        if entry.get("manager") != OWN_MANAGER and entry.get("subresource") not in _SYSTEM_SUBRESOURCES:
            for keys in _plain_leaves(entry.get("fieldsV1") or {}):
                if _matters(".".join(keys)) and not _is_within(keys, ours):
                    _set_none(patch, _root(keys, ours))
    return patch


def has_stale_fields(managed_fields: Iterable[dict[str, Any]]) -> bool:
    """Whether a field is there of which only our creation knows: the manifest applied since then does not have it."""
    ours: dict[str, set[str]] = {"Apply": set(), "Update": set()}
    for entry in managed_fields:
        if _is_ours(entry):
            ours[entry["operation"]].update(field_paths(entry.get("fieldsV1") or {}))
    return bool(ours["Update"] - ours["Apply"])


def as_applied_patch(managed_fields: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """A JSON patch that makes our `Update` the only entry of ours, and an `Apply`; [] where there is none."""
    found = {entry["operation"]: place for place, entry in enumerate(managed_fields) if _is_ours(entry)}
    if "Update" not in found:
        return []
    patch: list[dict[str, Any]] = []
    for operation, place in found.items():
        entry = f"/metadata/managedFields/{place}"
        patch.append({"op": "test", "path": f"{entry}/manager", "value": OWN_MANAGER})
        patch.append({"op": "test", "path": f"{entry}/operation", "value": operation})
    patch.append({"op": "replace", "path": f"/metadata/managedFields/{found['Update']}/operation", "value": "Apply"})
    if "Apply" in found:
        patch.append({"op": "remove", "path": f"/metadata/managedFields/{found['Apply']}"})
    return patch


def _is_ours(entry: dict[str, Any]) -> bool:
    return entry.get("manager") == OWN_MANAGER and not entry.get("subresource")


def _root(keys: tuple[str, ...], ours: set[str]) -> tuple[str, ...]:
    """As much as can go at once: an emptied `fairSharing: {}` would be filled with defaults. Labels go one by one."""
    if keys[0] == "metadata":
        return keys
    return next(keys[:depth] for depth in range(2, len(keys) + 1) if not _is_within(keys[:depth], ours))


def _is_within(keys: tuple[str, ...], ours: set[str]) -> bool:
    """Whether any field of ours is this one or lies below it."""
    path = ".".join(keys)
    return any(own == path or own.startswith((f"{path}.", f"{path}[")) for own in ours)


def _set_none(patch: dict[str, Any], keys: tuple[str, ...]) -> None:
    for key in keys[:-1]:
        patch = patch.setdefault(key, {})
    patch[keys[-1]] = None


def field_paths(fields: dict[str, Any]) -> Iterator[str]:
    """Leaves of a FieldsV1 tree as text: `spec.hard.requests.nvidia.com/gpu`, `spec.ports[{"port":80}].name`."""
    return (path for path, has_leaves in _nodes(fields) if not has_leaves)


def _nodes(fields: dict[str, Any], above: str = "") -> Iterator[tuple[str, bool]]:
    """Each path, and whether there are others below it."""
    for key, below in fields.items():
        if key == ".":
            continue
        sort, _, name = key.partition(":")
        here = f"{above}[{name}]" if sort in ("k", "v", "i") else f"{above}.{name}" if above else name
        has_leaves = bool(below) and set(below) != {"."}
        yield here, has_leaves
        if has_leaves:
            yield from _nodes(below, here)


def _plain_leaves(fields: dict[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Keys down to each leaf that no list lies on the way to."""
    for key, below in fields.items():
        sort, _, name = key.partition(":")
        if sort != "f":
            continue
        if below and set(below) != {"."}:
            yield from _plain_leaves(below, (*above, name))
        else:
            yield (*above, name)


def _matters(path: str) -> bool:
    for holder in _KEY_HOLDERS:
        if path == holder or path.startswith(f"{holder}."):
            return path[len(holder) + 1 :].startswith(_MEANINGFUL_KEYS)
    return not any(path == known or path.startswith((f"{known}.", f"{known}[")) for known in _SYSTEM_PATHS)


def _groups(leaves: set[str]) -> dict[str, int]:
    return dict(Counter(".".join(path.split(".")[:2]) for path in sorted(leaves)))
