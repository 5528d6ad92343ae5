"""What the search finds."""

from __future__ import annotations

from dataclasses import dataclass

TEXT_MAX = 80
# Results of one group: who needs more uses the list of that kind.
RESULTS_MAX = 8


@dataclass(frozen=True)
class Result:
    title: str
    detail: str
    href: str  # "": it has no page that this person may open


@dataclass(frozen=True)
class Group:
    kind: str
    label: str
    results: list[Result]
    has_more: bool
