"""Converts the text of a catalog file to values, or returns all its problems at once. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import yaml

from catalog.classes.validation.field_checks import TOLERATION_KEYS
from catalog.file.types import (
    REQUIRED,
    SECTIONS,
    VERSION,
    CatalogDocument,
    Entries,
    FieldSchema,
    FileProblem,
    Schema,
    Section,
)

BYTES_MAX = 2 * 1024 * 1024

LEVELS_MAX = 20  # a class's toleration is on the fifth; YAML parsing time grows with the square of the levels

INTEGER_MAX = 2_147_483_647

_SECONDS = FieldSchema("tolerationSeconds", "integer")


def read_document(text: str, schema: Schema) -> tuple[CatalogDocument, list[FileProblem]]:
    """Reports all errors together. If there are problems, the document must not be used."""
    reader = _Reader()
    try:
        root = reader.compose(text)
        sections = {} if root is None else reader.document(root, schema)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        return CatalogDocument(), [FileProblem("", f"This is not YAML: {error.problem or error.context}.", line)]
    except yaml.YAMLError:
        return CatalogDocument(), [FileProblem("", "This is not YAML: it contains an invalid character.")]
    return CatalogDocument(**sections), reader.problems


@dataclass
class _Reader:
    problems: list[FileProblem] = field(default_factory=list)

    def compose(self, text: str) -> yaml.Node | None:
        if len(text.encode(errors="replace")) > BYTES_MAX:
            self.say("", f"The file is larger than {BYTES_MAX // 1024**2} MiB.")
            return None
        level = 0
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            level += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if level > LEVELS_MAX:
                line = event.start_mark.line + 1 if event.start_mark else None
                self.problems.append(
                    FileProblem("", f"The file is nested too deeply: at most {LEVELS_MAX} levels.", line)
                )
                return None
            if isinstance(event, yaml.AliasEvent):
                self.problems.append(
                    FileProblem("", f"*{event.anchor} is a YAML alias; aliases are not supported. Write the value out.")
                )
        root = None if self.problems else yaml.compose(text, Loader=yaml.SafeLoader)
        if root is None and not self.problems:
            self.say("", "The file is empty.")
        return root

    def document(self, root: yaml.Node, schema: Schema) -> dict[str, Entries]:
        parts = self.mapping("", root, ("version", *SECTIONS))
        if not isinstance(root, yaml.MappingNode):
            return {}
        if "version" not in parts:
            self.say("version", f"Add the version of the file: `version: {VERSION}`.")
        elif _raw(parts["version"]) != str(VERSION):
            self.say("version", f"Only version {VERSION} of the file is supported.", parts["version"])
        return {name: self.entries(name, parts[name], schema[name]) for name in SECTIONS if name in parts}

    def entries(self, section: Section, node: yaml.Node, fields: tuple[FieldSchema, ...]) -> Entries:
        if _is_null(node):
            return {}
        found = self.mapping(section, node)
        return {name: self.entry(f"{section}.{name}", one, fields) for name, one in found.items()}

    def entry(self, path: str, node: yaml.Node, fields: tuple[FieldSchema, ...]) -> dict[str, Any]:
        found = self.mapping(path, node, [one.name for one in fields])
        values = {}
        for one in fields:
            if one.name in found:
                values[one.name] = self.value(f"{path}.{one.name}", found[one.name], one)
            elif one.default is REQUIRED:
                self.say(f"{path}.{one.name}", "This field is required: it has no default.", node)
            else:
                values[one.name] = one.default
        return values

    def mapping(self, path: str, node: yaml.Node, known: Iterable[str] | None = None) -> dict[str, yaml.Node]:
        if not isinstance(node, yaml.MappingNode):
            self.say(path, f"Enter names with values, not {_what(node)}.", node)
            return {}
        found: dict[str, yaml.Node] = {}
        known = None if known is None else list(known)
        for key, value in node.value:
            name = _raw(key)
            inner = f"{path}.{name}".lstrip(".")
            if name is None:
                self.say(path, f"Enter a name, not {_what(key)}.", key)
            elif name in found:
                self.say(inner, "This name is used twice.", key)
            elif known is not None and name not in known:
                self.say(inner, _unknown(name, known), key)
            else:
                found[name] = value
        return found

    def value(self, path: str, node: yaml.Node, one: FieldSchema) -> Any:
        if one.kind == "labels":
            return self.labels(path, node)
        if one.kind == "tolerations":
            return self.tolerations(path, node)
        if one.kind == "names":
            return sorted(set(filter(None, (self.text(path, item) for item in self.items(path, node)))))
        if _is_null(node) and one.is_optional:
            return None
        if one.kind == "text":
            return self.chosen(path, node, one)
        expected, parse = _SCALARS[one.kind]
        raw = _raw(node)
        is_quoted = isinstance(node, yaml.ScalarNode) and node.style is not None and one.kind in ("integer", "decimal")
        try:
            if raw is None or is_quoted:
                raise ValueError
            return parse(raw)
        except (ValueError, ArithmeticError, KeyError):
            shown = f"'{raw}' in quotes" if raw is not None and is_quoted else _what(node)
            self.say(path, f"Enter {expected}, not {shown}.", node)

    def chosen(self, path: str, node: yaml.Node, one: FieldSchema) -> str | None:
        text = self.text(path, node)
        if text is None:
            return None
        if one.choices and text not in one.choices:
            self.say(path, f"Enter one of {', '.join(one.choices)}, not '{text}'.", node)
        elif one.length_max is not None and len(text) > one.length_max:
            self.say(path, f"Enter at most {one.length_max:,} characters; the text has {len(text):,}.", node)
        return text

    def text(self, path: str, node: yaml.Node) -> str | None:
        raw = _raw(node)
        if raw is None:
            self.say(path, f"Enter a text, not {_what(node)}.", node)
        return raw

    def items(self, path: str, node: yaml.Node) -> list[yaml.Node]:
        if isinstance(node, yaml.SequenceNode):
            return list(node.value)
        self.say(path, f"Enter a list, not {_what(node)}.", node)
        return []

    def labels(self, path: str, node: yaml.Node) -> dict[str, str | None]:
        return {name: self.text(f"{path}.{name}", value) for name, value in self.mapping(path, node).items()}

    def tolerations(self, path: str, node: yaml.Node) -> list[dict[str, Any]]:
        found = []
        for index, item in enumerate(self.items(path, node)):
            inner = f"{path}[{index}]"
            found.append(
                {
                    name: self.value(f"{inner}.{name}", value, _SECONDS)
                    if name == _SECONDS.name
                    else self.text(f"{inner}.{name}", value)
                    for name, value in self.mapping(inner, item, TOLERATION_KEYS).items()
                }
            )
        return found

    def say(self, path: str, text: str, node: yaml.Node | None = None) -> None:
        self.problems.append(FileProblem(path, text, None if node is None else node.start_mark.line + 1))


def _raw(node: yaml.Node) -> str | None:
    """Returns the scalar as written: 12.10 stays 12.10 and 010 is ten, unlike in YAML. None: empty, or not a scalar."""
    return str(node.value) if isinstance(node, yaml.ScalarNode) and not _is_null(node) else None


def _is_null(node: yaml.Node) -> bool:
    return bool(node.tag == "tag:yaml.org,2002:null")


def _what(node: yaml.Node) -> str:
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    if isinstance(node, yaml.MappingNode):
        return "names with values"
    return "nothing" if _is_null(node) else f"'{str(node.value)[:60]}'"


def _unknown(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    way = f"Did you mean {near[0]}?" if near else f"Possible fields: {', '.join(sorted(known))}."
    return f"Unknown field. {way}"


def _integer(raw: str) -> int:
    if not re.fullmatch(r"[0-9]+", raw) or len(raw) > 10 or int(raw) > INTEGER_MAX:
        raise ValueError
    return int(raw)


def _decimal(raw: str) -> Decimal:
    if not re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", raw):
        raise ValueError
    return Decimal(raw)


def _moment(raw: str) -> datetime:
    found = datetime.fromisoformat(raw)
    if found.tzinfo is None:
        raise ValueError
    return found.astimezone(UTC)


def _truth(raw: str) -> bool:
    return {"true": True, "false": False}[raw]


_SCALARS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "integer": ("a whole number of 0 or more", _integer),
    "decimal": ("a number such as 2.50", _decimal),
    "truth": ("'true' or 'false'", _truth),
    "date": ("a date such as 2027-03-31", date.fromisoformat),
    "moment": ("a time with its zone, such as 2027-03-31T18:00:00Z", _moment),
}
