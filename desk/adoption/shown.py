"""Findings as the page groups them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from operations.adoption.findings import Effect

_TITLES = {
    Effect.BLOCKED: ("Must be gone first", "Nothing is adopted while one of these exists."),
    Effect.LOST: ("Lost", "Its owner accepts that each of these no longer works as before."),
    Effect.CHANGED: ("Changed", "An undo puts these back."),
    Effect.KEPT: ("Stays as it is", "The portal does not change or delete these."),
}


@dataclass(frozen=True)
class FindingGroup:
    effect: Effect
    title: str
    text: str
    findings: list[Mapping[str, str]]


def grouped_findings(findings: Iterable[Mapping[str, str]]) -> list[FindingGroup]:
    """In the order of Effect; groups without findings are left out."""
    found = list(findings)
    groups = [
        FindingGroup(effect, title, text, [one for one in found if one["effect"] == effect])
        for effect, (title, text) in _TITLES.items()
    ]
    return [group for group in groups if group.findings]
