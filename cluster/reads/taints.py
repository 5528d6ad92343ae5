"""Taints and tolerations, matched as the scheduler does. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def is_tolerated(taint: Mapping[str, str], tolerations: Iterable[Mapping[str, str]]) -> bool:
    """True if pods with these tolerations may run despite this taint. An empty key with Exists tolerates any taint."""
    return any(_matches(one, taint) for one in tolerations)


def _matches(toleration: Mapping[str, str], taint: Mapping[str, str]) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    key, is_any = toleration.get("key", ""), toleration.get("operator", "Equal") == "Exists"
    if key != taint["key"] and not (is_any and not key):
        return False
    return is_any or toleration.get("value", "") == taint.get("value", "")
