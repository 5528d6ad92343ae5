"""A class as a request needs it, and units beyond the limit of a class. The packages that use grants share these
values.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ClassFacts:
    """A class as a request needs it. `held`: units of it that the team has in force now; `successor`: the name of the
    class that replaces it, "" for none.
    """

    slug: str
    name: str
    life_cycle: str
    held: int = 0
    is_pending: bool = False
    successor: str = ""
    # A pending line would reduce it.
    is_reclaimed: bool = False
    unit: str = "unit"


@dataclass(frozen=True)
class Overcommit:
    """By how much a decision would exceed the limit of a class. `limit` None: the allocatable units are unknown."""

    class_name: str
    units: int
    limit: int | None
