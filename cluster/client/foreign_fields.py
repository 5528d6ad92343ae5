"""Finds in a live object what other writers added to it, and returns the JSON patch that removes it. Pure.

An apply resets only the fields that we send: what others added beside them stays. managedFields says where it is, with
keys of list items instead of positions ("k:{"name":"a"}"); the positions are those in the object that is passed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from cluster.client.managed_fields import OWN_MANAGER, SYSTEM_SUBRESOURCES, field_paths, is_drift

Fields = dict[str, Any]
Place = tuple[str | int, ...]


def removal_patch(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns JSON patch operations, or [] if others added nothing that counts. A field that we send too is not
    removed, whoever else wrote it. The patch is refused as a conflict if the object has changed since.
    """
    ours: Fields = {}
    theirs: Fields = {}
    for entry in body["metadata"].get("managedFields") or []:
        if entry.get("manager") == OWN_MANAGER:
            _merge(ours, entry.get("fieldsV1") or {})
        elif entry.get("subresource") not in SYSTEM_SUBRESOURCES:
            _merge(theirs, entry.get("fieldsV1") or {})
    if not ours:
        return []
    # The last item of a list first, so that the positions of the others stay right.
    places = sorted(_added(theirs, ours, body, (), ""), reverse=True)
    return [_at_version(body), *({"op": "remove", "path": _pointer(place)} for place in places)] if places else []


def disowning_patch(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns JSON patch operations that remove the records of other writers with fields that count, or []. The values
    stay.
    """
    places = [
        place
        for place, entry in enumerate(body["metadata"].get("managedFields") or [])
        if entry.get("manager") != OWN_MANAGER
        and entry.get("subresource") not in SYSTEM_SUBRESOURCES
        and any(is_drift(path) for path in field_paths(entry.get("fieldsV1") or {}))
    ]
    removals = [{"op": "remove", "path": f"/metadata/managedFields/{place}"} for place in reversed(places)]
    return [_at_version(body), *removals] if removals else []


def unknown_fields_patch(body: dict[str, Any], manifest: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns JSON patch operations that remove the top-level fields which the manifest does not have."""
    places = [key for key in body if key not in manifest and key != "status"]
    removals = [{"op": "remove", "path": _pointer((place,))} for place in places]
    return [_at_version(body), *removals] if removals else []


def content(body: dict[str, Any]) -> dict[str, Any]:
    """The object without its status and the API server's records of who wrote it when."""
    metadata = {key: one for key, one in body["metadata"].items() if key not in ("managedFields", "resourceVersion")}
    return {**{key: one for key, one in body.items() if key != "status"}, "metadata": metadata}


def _at_version(body: dict[str, Any]) -> dict[str, Any]:
    return {"op": "replace", "path": "/metadata/resourceVersion", "value": body["metadata"]["resourceVersion"]}


def _merge(into: Fields, fields: Fields) -> None:
    for key, below in fields.items():
        _merge(into.setdefault(key, {}), below)


def _added(theirs: Fields, ours: Fields, value: Any, place: Place, path: str) -> Iterator[Place]:
    """Yields the highest places that are not ours: an emptied `fairSharing: {}` would get defaults. In metadata only
    single labels and annotations are removed, since most of them are none of our business.
    """
    for key, below in theirs.items():
        step = _step(key, value)
        if step is None:
            continue
        here, mine = _path(key, path), ours.get(key)
        if mine is None and not (path == "metadata" and _has_children(below)):
            if is_drift(here):
                yield (*place, step)
        # Of a map or list that we own as a whole, the apply has restored everything.
        elif _has_children(below) and (mine is None or _has_children(mine)):
            yield from _added(below, mine or {}, value[step], (*place, step), here)


def _has_children(fields: Fields) -> bool:
    return any(key != "." for key in fields)


def _path(key: str, above: str) -> str:
    sort, _, name = key.partition(":")
    return f"{above}[{name}]" if sort != "f" else f"{above}.{name}" if above else name


def _step(key: str, value: Any) -> str | int | None:
    """Returns the key of the map or the position in the list, or None if the object does not have it."""
    sort, _, name = key.partition(":")
    if sort == "f":
        return name if isinstance(value, dict) and name in value else None
    if not isinstance(value, list):
        return None
    if sort == "k":
        wanted = json.loads(name)
        return next((at for at, one in enumerate(value) if _has(one, wanted)), None)
    if sort == "v":
        wanted = json.loads(name)
        return next((at for at, one in enumerate(value) if one == wanted), None)
    return int(name) if sort == "i" and int(name) < len(value) else None


def _has(item: Any, keys: dict[str, Any]) -> bool:
    return isinstance(item, dict) and all(item.get(name) == wanted for name, wanted in keys.items())


def _pointer(place: Place) -> str:
    """RFC 6901: "~" and "/" inside a key are escaped."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in place)
