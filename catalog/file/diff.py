"""What applying a catalog file would change, as values and as lines for users. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from catalog.file.types import REQUIRED, SECTIONS, CatalogDocument, Entries, FieldSchema, Schema, Section

ONE = {"classes": "class", "images": "image"}
LONG = 60


@dataclass(frozen=True)
class EntryChange:
    """The change of one entry. `fields`: (before, after) by name; a new entry starts from defaults. `sign`: + ~ -."""

    section: Section
    name: str
    sign: str
    fields: Mapping[str, tuple[Any, Any]]

    @property
    def path(self) -> str:
        return f"{self.section}.{self.name}"


def diff_documents(
    now: CatalogDocument, wanted: CatalogDocument, schema: Schema, *, prune: bool = False
) -> list[EntryChange]:
    """Returns the changes by section and name. Entries that `wanted` does not name stay; with `prune`, classes are
    retired and images removed in the sections that it has. Drafts are kept: only operators see them.
    """
    changes: list[EntryChange] = []
    for section in SECTIONS:
        there, asked = getattr(now, section) or {}, getattr(wanted, section)
        if asked is None:
            continue
        changes += _asked(section, there, asked, schema[section])
        changes += _left_out(section, there, asked) if prune else ()
    return changes


def diff_lines(changes: list[EntryChange], schema: Schema) -> list[str]:
    """Returns lines, one for each field: `~ class a100: promise_limit 8 → 12`."""
    return [line for change in changes for line in _lines(change, {one.name: one for one in schema[change.section]})]


def _asked(section: Section, there: Entries, asked: Entries, fields: tuple[FieldSchema, ...]) -> Iterator[EntryChange]:
    for name in sorted(asked):
        before = there.get(name) or {one.name: "" if one.default is REQUIRED else one.default for one in fields}
        changed = {
            one.name: (before[one.name], asked[name][one.name])
            for one in fields
            if before[one.name] != asked[name][one.name]
        }
        if changed or name not in there:
            yield EntryChange(section, name, "~" if name in there else "+", changed)


def _left_out(section: Section, there: Entries, asked: Entries) -> Iterator[EntryChange]:
    for name in sorted(set(there) - set(asked)):
        if section == "images":
            yield EntryChange(section, name, "-", {})
        elif (life_cycle := there[name]["life_cycle"]) in ("active", "retiring"):
            yield EntryChange(section, name, "-", {"life_cycle": (life_cycle, "retired")})


def _lines(change: EntryChange, fields: Mapping[str, FieldSchema]) -> Iterator[str]:
    head = f"{change.sign} {ONE[change.section]} {change.name}"
    if not change.fields:
        yield f"{head}: removed" if change.sign == "-" else head
    for name, (before, after) in change.fields.items():
        yield f"{head}: {name} {_told(fields[name], before, after, is_new=change.sign == '+')}"


def _told(one: FieldSchema, before: Any, after: Any, *, is_new: bool) -> str:
    if one.kind == "labels":
        gone = [f"−{name}={value}" for name, value in sorted(before.items()) if after.get(name) != value]
        come = [f"+{name}={value}" for name, value in sorted(after.items()) if before.get(name) != value]
        return " ".join(gone + come)
    if one.kind == "names":
        return " ".join([*(f"−{n}" for n in before if n not in after), *(f"+{n}" for n in after if n not in before)])
    if one.kind == "text" and max(len(before), len(after)) > LONG:
        return f"{len(after):,} characters" if is_new else f"changed, {len(before):,} → {len(after):,} characters"
    return _shown(one, after) if is_new else f"{_shown(one, before)} → {_shown(one, after)}"


def _shown(one: FieldSchema, value: Any) -> str:
    match value:
        case None:
            return "empty"
        case bool():
            return "true" if value else "false"
        case Decimal():
            return f"{value.normalize():f}"
        case datetime():
            return f"{value:%Y-%m-%d %H:%M} UTC"
        case list():
            return "; ".join(" ".join(str(part) for part in item.values()) for item in value) or "none"
        case str():
            return value if one.choices else f'"{" ".join(value.split())}"'
        case _:
            return str(value)
