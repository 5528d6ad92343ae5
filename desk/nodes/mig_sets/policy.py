"""How many nodes of a set are planned together. Pure."""

from __future__ import annotations

from collections.abc import Collection

from operations.maintenance.policy import NODES_MOST
from portal.core.errors import Refusal


def nodes_refusal(names: Collection[str]) -> Refusal | None:
    """Also if nobody chose them: by default all nodes of a set are planned."""
    if len(names) <= NODES_MOST:
        return None
    text = f"{len(names)} nodes would be planned together. Choose at most {NODES_MOST} of them."
    return Refusal("invalid", text, "nodes")
