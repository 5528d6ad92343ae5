"""A grant as pages and API show it, and a reduction of its units."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from portal.core.errors import Refusal
from tenants.grants import types as grant_types


@dataclass(frozen=True)
class GrantRow:
    """`state`: now, later, or grace (it expired, running workloads continue until `runs_until`).

    `request`: the request that created it, None for a grant without one. `follows`: the total of the base grant that
    starts when or after this one ends, None without one; `is_continued`: it starts without a gap. `facts`: the class as
    a renewal needs it, None if the team may not request it. `taking`: a proposed or approved reduction. `refusal`: why
    this person may not renew it, `reclaim_refusal`: why not reduce it; the page fills in both.
    """

    pk: int
    slug: str
    name: str
    unit: str
    is_storage: bool
    kind: str
    units: int
    starts: datetime
    ends: datetime
    runs_until: datetime
    state: str
    request: int | None
    follows: int | None
    is_continued: bool
    facts: grant_types.ClassFacts | None
    taking: GrantReclaim | None
    refusal: Refusal | None = None
    reclaim_refusal: Refusal | None = None

    @property
    def take_label(self) -> str:
        return "Reduce storage quota…" if self.is_storage else "Reduce quota…"

    @property
    def has_grace(self) -> bool:
        return self.runs_until > self.ends


@dataclass(frozen=True)
class GrantReclaim:
    """A proposed or approved reduction of a grant: the units that remain from `starts` on. `until`: its old end."""

    request: int
    is_pending: bool
    units: int
    starts: datetime
    until: datetime
