"""Plans as configurations of mig-parted, which NVIDIA's MIG manager applies. Pure.

Format `v1` of mig-parted: a configuration lists groups of GPUs by their index on the node, with the number of instances
of each profile, and `+` in its name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import yaml

from catalog.discovery.mig_placement import MigLayout
from catalog.mig.layouts import profiles_of


def parted_config(name: str, layouts: Sequence[tuple[MigLayout, int]]) -> dict[str, Any]:
    """GPUs get the layouts in order of their index. GPUs that a configuration does not list stay as they are."""
    groups: list[dict[str, Any]] = []
    first = 0
    for layout, number in layouts:
        devices = list(range(first, first + number))
        instances = dict(Counter(profiles_of(layout)))
        groups.append({"devices": devices, "mig-enabled": True, "mig-devices": instances})
        first += number
    return {"version": "v1", "mig-configs": {name: groups}}


def parted_text(name: str, layouts: Sequence[tuple[MigLayout, int]]) -> str:
    return str(yaml.safe_dump(parted_config(name, layouts), sort_keys=False))
