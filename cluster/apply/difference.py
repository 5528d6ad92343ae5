"""The difference of two objects as readable lines, "- path: before" and "+ path: after". Pure.

Items of a list are compared by what they are, not by their place: by name where all have one, else by content. So an
item that is added in front does not look like a change of all that follow.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

Line = tuple[str, str, str]


def diff_lines(before: dict[str, Any] | None, after: dict[str, Any]) -> tuple[str, ...]:
    """Returns lines for every leaf that differs, without what the API server writes (status, most of metadata)."""
    lines = _compared("", _ours(before) if before is not None else {}, _ours(after))
    ordered = sorted(lines, key=lambda line: (line[0], line[1] == "+"))
    return tuple(f"{sign} {path}: {text}" for path, sign, text in ordered)


def _ours(body: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in body.items() if key not in ("apiVersion", "kind", "metadata", "status")}
    labels = {
        key: value
        for key, value in (body.get("metadata", {}).get("labels") or {}).items()
        if key != "kubernetes.io/metadata.name"
    }
    return {**kept, "labels": labels}


def _compared(path: str, before: Any, after: Any) -> Iterator[Line]:
    if before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _compared_keys(before, after, f"{path}." if path else "")
    elif isinstance(before, list) and isinstance(after, list):
        old, new = _by_name(before), _by_name(after)
        # Where only the order differs, there is nothing else to say.
        if old is not None and new is not None and old != new:
            yield from _compared_keys(old, new, f"{path}[", "]")
        else:
            yield from _compared_items(path, before, after)
    else:
        yield from _leaves(path, "-", before)
        yield from _leaves(path, "+", after)


def _compared_keys(before: dict[str, Any], after: dict[str, Any], opened: str, closed: str = "") -> Iterator[Line]:
    for key in before | after:
        place = f"{opened}{key}{closed}"
        if key not in after:
            yield from _leaves(place, "-", before[key])
        elif key not in before:
            yield from _leaves(place, "+", after[key])
        else:
            yield from _compared(place, before[key], after[key])


def _compared_items(path: str, before: list[Any], after: list[Any]) -> Iterator[Line]:
    old, new = list(enumerate(before)), list(enumerate(after))
    for item in before:
        place = next((place for place in new if place[1] == item), None)
        if place is not None:
            new.remove(place)
            old.remove(next(place for place in old if place[1] == item))
    if not old and not new:
        yield path, "-", json.dumps(before)
        yield path, "+", json.dumps(after)
    elif len(old) == len(new) and all(isinstance(item, dict) for _index, item in (*old, *new)):
        # As many as before: these are the same items with other content.
        for (_index, was), (index, item) in zip(old, new, strict=True):
            yield from _compared(f"{path}[{index}]", was, item)
    else:
        for sign, items in (("-", old), ("+", new)):
            for index, item in items:
                yield from _leaves(f"{path}[{index}]", sign, item)


def _by_name(items: list[Any]) -> dict[str, Any] | None:
    """Returns the items by name; None unless each has a name of its own."""
    names = [item.get("name") if isinstance(item, dict) else None for item in items]
    is_named = None not in names and len(set(names)) == len(names)
    return dict(zip(map(str, names), items, strict=True)) if is_named else None


def _leaves(path: str, sign: str, value: Any) -> Iterator[Line]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(f"{path}.{key}" if path else str(key), sign, inner)
    elif isinstance(value, list) and value:
        named = _by_name(value)
        for key, inner in named.items() if named is not None else enumerate(value):
            yield from _leaves(f"{path}[{key}]", sign, inner)
    else:
        yield path, sign, str(value)
