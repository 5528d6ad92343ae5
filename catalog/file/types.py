"""The catalog file as values: its sections, their schema, its problems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

VERSION = 1

Section = Literal["classes", "images"]

SECTIONS: tuple[Section, ...] = ("classes", "images")

REQUIRED: Any = object()

Entries = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class FieldSchema:
    """`default` REQUIRED: an entry without it is refused. `choices` empty: any text."""

    name: str
    kind: Literal["text", "integer", "decimal", "truth", "date", "moment", "labels", "tolerations", "names"]
    default: Any = REQUIRED
    choices: tuple[str, ...] = ()
    length_max: int | None = None
    is_optional: bool = False


Schema = Mapping[Section, tuple[FieldSchema, ...]]


@dataclass(frozen=True)
class CatalogDocument:
    """Every field of every entry. A section that is missing in the file is None."""

    classes: Entries | None = None
    images: Entries | None = None


@dataclass(frozen=True)
class FileProblem:
    """`path` as in the file: classes.a100.resource."""

    path: str
    text: str
    line: int | None = None

    def __str__(self) -> str:
        where = ", ".join(filter(None, [f"line {self.line}" if self.line else "", self.path]))
        return f"{where}: {self.text}" if where else self.text
