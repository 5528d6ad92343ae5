"""Names of layouts that say what they are: `portal-2gpu_7x1g.10gb-2gpu_2x3g.40gb` is seven instances of 1g.10gb on each
of two GPUs, and two of 3g.40gb on each of the next two; `portal-8gpu_whole` are eight GPUs without MIG. Pure.

The MIG manager acts when the label with the name changes: two layouts never have the same name, and one layout always
has the same. What a name says is all that has to be stored of a planned layout.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from catalog.discovery.mig_profiles import as_resource, from_resource
from catalog.mig.parted import WHOLE, Shares

PREFIX = "portal-"
# Of a layout whose name would be too long for a label.
UNNAMED = "planned"
_LENGTH_MOST = 63
_GROUP = re.compile(r"([1-9]\d?)gpu_(.+)")
_INSTANCES = re.compile(r"([1-9]\d?)x(\d+g\.\d+gb[a-z.-]*)")


def layout_name(shares: Shares) -> str:
    groups = (
        f"{number}gpu_" + (WHOLE if WHOLE in instances else "_".join(_instances(instances)))
        for instances, number in shares
    )
    name = PREFIX + "-".join(groups)
    return name if len(name) <= _LENGTH_MOST and named_shares(name) == list(shares) else UNNAMED


def named_shares(name: str) -> Shares | None:
    """What a name says; None if it is no name of a layout."""
    if not name.startswith(PREFIX):
        return None
    found: list[tuple[dict[str, int], int]] = []
    for part in re.split(r"-(?=\d+gpu_)", name.removeprefix(PREFIX)):
        group = _GROUP.fullmatch(part)
        if group is not None and group[2] == WHOLE:
            found.append(({WHOLE: 1}, int(group[1])))
            continue
        instances = [_INSTANCES.fullmatch(one) for one in group[2].split("_")] if group else []
        counts = {from_resource(one[2]): int(one[1]) for one in instances if one}
        if group is None or len(counts) != len(instances):
            return None
        found.append((counts, int(group[1])))
    return found


def _instances(counts: Mapping[str, int]) -> list[str]:
    return [f"{count}x{as_resource(profile)}" for profile, count in counts.items()]
