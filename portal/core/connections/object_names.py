"""Names of Kubernetes objects in settings. Pure."""

from __future__ import annotations

import re

_NAMESPACED = re.compile(r"([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)/([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)")


def namespaced_name(value: str) -> tuple[str, str] | None:
    """`namespace/name` as both parts; None if empty. Raises ValueError for anything else."""
    if not value:
        return None
    found = _NAMESPACED.fullmatch(value)
    if found is None:
        raise ValueError("write it as NAMESPACE/NAME")
    return found[1], found[3]
