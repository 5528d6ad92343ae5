"""Plans as configurations of mig-parted, which NVIDIA's MIG manager applies, and files of them. Pure.

Format `v1` of mig-parted: a configuration lists groups of GPUs by their index on the node, with the number of instances
of each profile, and `+` in its name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from catalog.discovery.mig_placement import MigLayout
from catalog.mig.layouts import profiles_of

CONFIGS = "mig-configs"
# In the place of profiles: one GPU without MIG.
WHOLE = "whole"
# Instances by profile, and how many GPUs get them.
Shares = Sequence[tuple[Mapping[str, int], int]]
_HEAD = re.compile(rf"^{CONFIGS}:[ \t]*(#[^\n]*)?\n", re.MULTILINE)
_FIRST = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)*( +)[^\s#]")


class NotAdded(Exception):
    """A configuration cannot be added to a file; the message is a sentence that says why."""


def shares_of(layouts: Sequence[tuple[MigLayout, int]]) -> Shares:
    return [(dict(Counter(profiles_of(layout))), number) for layout, number in layouts]


def parted_groups(shares: Shares) -> list[dict[str, Any]]:
    """GPUs get the layouts in order of their index. GPUs that a configuration does not list stay as they are."""
    groups: list[dict[str, Any]] = []
    first = 0
    for instances, number in shares:
        devices = list(range(first, first + number))
        if WHOLE in instances:
            groups.append({"devices": devices, "mig-enabled": False})
        else:
            groups.append({"devices": devices, "mig-enabled": True, "mig-devices": dict(instances)})
        first += number
    return groups


def parted_text(name: str, shares: Shares) -> str:
    return _dumped({"version": "v1", CONFIGS: {name: parted_groups(shares)}})


def with_config(text: str, name: str, shares: Shares) -> str:
    """The file with this configuration; the same if it has it. All that is there stays byte for byte: the configuration
    is inserted as lines before the first one. Raises NotAdded if that cannot be done for sure.
    """
    before = _read(text)
    groups = parted_groups(shares)
    if name in before[CONFIGS]:
        if before[CONFIGS][name] != groups:
            raise NotAdded(f"has another layout of the name {name}.")
        return text
    heads = list(_HEAD.finditer(text))
    first = _FIRST.match(text, heads[0].end()) if len(heads) == 1 else None
    if first is None:
        raise NotAdded(
            f"has no block {CONFIGS} with a configuration on lines of its own, before which one can be added."
        )
    at = heads[0].end()
    lines = _dumped({name: groups}).splitlines(keepends=True)
    found = text[:at] + "".join(first[1] + line for line in lines) + text[at:]
    if _read(found) != {**before, CONFIGS: {**before[CONFIGS], name: groups}}:
        raise NotAdded("would not be the same beside the added layout.")
    return found


def _read(text: str) -> dict[str, Any]:
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError:
        raise NotAdded("is not YAML.") from None
    if not isinstance(found, dict) or found.get("version") != "v1" or not isinstance(found.get(CONFIGS), dict):
        raise NotAdded(f"is not a configuration of mig-parted: it needs `version: v1` and {CONFIGS}.")
    return found


def _dumped(value: dict[str, Any]) -> str:
    return str(yaml.safe_dump(value, sort_keys=False))
