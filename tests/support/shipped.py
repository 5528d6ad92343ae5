"""Reads files of the repository as data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

Json = dict[str, Any]
ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
# A version with at least two numbers: `18` or `latest` could be another program tomorrow.
PINNED = re.compile(r"^[\w./-]+:v?\d+\.\d+[\w.-]*$")


def documents(folder: Path) -> Iterator[Json]:
    """Returns every object that the kustomization of `folder` lists, in its order."""
    for entry in yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]:
        if (folder / entry).is_dir():
            yield from documents(folder / entry)
        else:
            yield from yaml.safe_load_all((folder / entry).read_text())


def compose() -> Json:
    content: Json = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return content


def variables_of_settings() -> set[str]:
    """Names of the environment variables that the portal's settings read; a secret also as NAME_FILE."""
    text = (ROOT / "portal" / "settings.py").read_text()
    plain = set(re.findall(r"env\.\w+\(\s*\"([A-Z_]+)\"", text))
    secrets = set(re.findall(r"\bsecret\(\s*\"([A-Z_]+)\"", text))
    return plain | secrets | {f"{name}_FILE" for name in secrets}
