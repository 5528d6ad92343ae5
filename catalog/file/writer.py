"""Writes values as the text of a catalog file, for a site that keeps it in git. Pure.

An entry has only the fields that differ from their defaults. An entry that is not in the file is not changed in the
database (see catalog/file/diff.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import yaml

from catalog.classes.validation.field_checks import TOLERATION_KEYS
from catalog.file.types import SECTIONS, VERSION, CatalogDocument, FieldSchema, Schema

UNITS = {
    "memory_mib": "MiB per unit",
    "units_per_workload": "units",
    "cpu_per_unit": "cores",
    "memory_gib_per_unit": "GiB of the node's memory",
    "price_per_unit_hour": "per unit-hour",
    "weight": "GPU equivalents per unit",
    "promise_limit": "units",
    "borrowing_limit": "units per team",
    "replicas": "shares per GPU",
    "run_hours_limit": "hours from the start of a run",
    "idle_stop_minutes": "minutes without activity",
    "idle_minutes": "minutes without GPU activity",
    "production_limit": "production units per team",
    "log_retention_days": "days after a run, 0: not kept",
    "damping_minutes": "minutes before lent quota falls, 0: at once",
    "max_units": "units that nodes of an autoscaler may have",
    "node_minutes": "minutes until an added node is ready",
}
HEADER = f"""\
# The catalog of classes and images, written by `manage.py catalog export`.
# `manage.py catalog apply FILE --dry-run` shows what the file would change. A field that is left out has its default.
version: {VERSION}
"""


# ---- writing YAML text -------------------------------------------------------------------------------------------


def write_document(document: CatalogDocument, schema: Schema) -> str:
    """The same document gives the same text: entries by name, fields in the order of the schema, defaults left out."""
    parts = [HEADER]
    for section in SECTIONS:
        entries = getattr(document, section) or {}
        if not entries:
            parts.append(f"\n{section}: {{}}\n")
            continue
        parts.append(f"\n{section}:\n")
        parts += [_entry(name, entries[name], schema[section]) for name in sorted(entries)]
    return "".join(parts)


def _entry(name: str, values: Mapping[str, Any], fields: tuple[FieldSchema, ...]) -> str:
    said = {one.name: _ordered(values[one.name], one) for one in fields if values[one.name] != one.default}
    lines = _dumped({name: said}).splitlines()
    return "".join(f"  {_commented(line)}\n" if line else "\n" for line in lines)


def _ordered(value: Any, one: FieldSchema) -> Any:
    """PostgreSQL returns the keys of JSON in its own order."""
    if one.kind == "labels":
        return dict(sorted(value.items()))
    if one.kind == "tolerations":
        return [{name: item[name] for name in TOLERATION_KEYS if name in item} for item in value]
    return value


def _commented(line: str) -> str:
    """Adds the unit as a comment behind a number. Fields are indented by two columns; multi-line texts more."""
    found = re.fullmatch(r"  (\w+): -?[0-9.]+", line)
    return f"{line}  # {UNITS[found[1]]}" if found and found[1] in UNITS else line


class _Dumper(yaml.SafeDumper):
    """Indents lists, writes multi-line texts as literal blocks, decimals and times plain."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _dumped(values: Any) -> str:
    return yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000)


def _text_node(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # Empty lines at the end would leave a literal block open, and the next lines could not be parsed.
    is_block = "\n" in text and not text.endswith("\n\n") and text != "\n"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if is_block else None)


def _decimal_node(dumper: yaml.SafeDumper, number: Decimal) -> yaml.ScalarNode:
    text = f"{number.normalize():f}"
    return dumper.represent_scalar(f"tag:yaml.org,2002:{'float' if '.' in text else 'int'}", text)


def _moment_node(dumper: yaml.SafeDumper, moment: datetime) -> yaml.ScalarNode:
    text = moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return dumper.represent_scalar("tag:yaml.org,2002:timestamp", text)


_Dumper.add_representer(str, _text_node)
_Dumper.add_representer(Decimal, _decimal_node)
_Dumper.add_representer(datetime, _moment_node)
