"""What apps above this one measured of a team, shown to whoever decides. The URL map hands the measuring in: tenants
imports none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from catalog.models import GpuClass
from tenants.models import Tenant


@dataclass(frozen=True)
class UsageEvidence:
    """In words, each with its unit; "–" where there is nothing to tell, "unknown" where nobody looked.

    `rows`: name of a fact → its text by class id. `note`: how far they can be trusted. `members`: name and what they
    used. `cards`: physical cards of one unit, by class id; None: it has none. `plain`: the same facts by class id as a
    decision keeps them.
    """

    rows: tuple[tuple[str, Mapping[int, str]], ...] = ()
    note: str = ""
    members: tuple[tuple[str, str], ...] = ()
    cards: Mapping[int, Fraction | None] = field(default_factory=dict)
    plain: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)


MeasureUsage = Callable[[Tenant, Collection[GpuClass]], UsageEvidence]
