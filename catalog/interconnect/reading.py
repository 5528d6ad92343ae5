"""What a pasted output or the log of a measuring Job contains. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from catalog.interconnect.nccl import all_reduce_in
from catalog.interconnect.topo import links_in
from catalog.interconnect.types import AllReduce, Links, UnreadableError

# The header of the matrix is underlined in a terminal.
_STYLE = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Reading:
    """At least one of them."""

    links: Links | None
    all_reduce: AllReduce | None


def read_output(text: str) -> Reading:
    """Raises UnreadableError."""
    lines = _STYLE.sub("", text).splitlines()
    found = Reading(links_in(lines), all_reduce_in(lines))
    if found.links is None and found.all_reduce is None:
        raise UnreadableError(
            "It contains neither the matrix of nvidia-smi topo -m (a header that begins with GPU0) nor the table of "
            "all_reduce_perf (a header with busbw). Paste the whole output of one or both."
        )
    return found
