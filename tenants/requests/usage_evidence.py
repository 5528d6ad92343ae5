"""What apps above this one measured about a team, shown to the person who decides. The URL configuration passes the
measuring function in: tenants imports none of these apps.
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
    """As text, each with its unit; "–" if there is no value, "unknown" if nothing was measured.

    `rows`: name of a fact → its text by class id. `note`: how reliable the values are. `members`: name and usage.
    `idle`: runs that hold units without using them, as workload and sentence; a bounded number.
    `cards`: physical GPUs per unit, by class id; None: it has none. `units_per_card`: the most units of a class that
    one GPU holds, if it is known. `plain`: the same facts by class id in the form that a decision stores.
    """

    rows: tuple[tuple[str, Mapping[int, str]], ...] = ()
    note: str = ""
    members: tuple[tuple[str, str], ...] = ()
    idle: tuple[tuple[str, str], ...] = ()
    cards: Mapping[int, Fraction | None] = field(default_factory=dict)
    units_per_card: Mapping[int, int] = field(default_factory=dict)
    plain: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)


MeasureUsage = Callable[[Tenant, Collection[GpuClass]], UsageEvidence]
