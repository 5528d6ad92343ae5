"""Compares whole objects with tests/golden/<name>.yaml. `UPDATE_GOLDEN=1` writes the files, for a reviewer to read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

DIRECTORY = Path(__file__).parents[1] / "golden"


def check(name: str, objects: Iterable[Mapping[str, Any]], *, words: Mapping[str, str] | None = None) -> None:
    """`words`: texts of this run (names, hashes) and their replacements in the file."""
    text = render(objects)
    for found, stands_for in (words or {}).items():
        text = text.replace(found, stands_for)
    path = DIRECTORY / f"{name}.yaml"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text(), f"tests/golden/{name}.yaml is different; UPDATE_GOLDEN=1 writes it"


def render(objects: Iterable[Mapping[str, Any]]) -> str:
    """Keeps the given order; leaves out what only the API server writes (status, uids, versions, times)."""
    meant = [_meant(one) for one in objects]
    return yaml.dump_all(meant, Dumper=_WithoutAliases, sort_keys=True, width=120, explicit_start=True)


class _WithoutAliases(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _meant(one: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {key: one["metadata"][key] for key in ("name", "namespace", "labels") if key in one["metadata"]}
    return {**{key: value for key, value in one.items() if key != "status"}, "metadata": metadata}
