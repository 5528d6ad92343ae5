"""Reads YAML files with several documents. Uses the C loader if it exists: without it, reading Kueue's CRDs takes
seconds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parse(text: str) -> list[dict[str, Any]]:
    return [found for found in yaml.load_all(text, Loader=_Loader) if found]


def read_all(path: Path) -> list[dict[str, Any]]:
    return parse(path.read_text())


def read(path: Path) -> dict[str, Any]:
    return read_all(path)[0]
