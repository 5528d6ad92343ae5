"""Values for decisions about some classes, at one instant: capacity, allocations, base grants."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from catalog.classes.capacity import queries as capacity_queries
from catalog.classes.capacity.types import Capacity
from catalog.models import GpuClass
from tenants.grants import combined_promises
from tenants.grants.combined_promises import Change
from tenants.grants.overcommit import queries as overcommit_queries
from tenants.grants.promises import Promise, Step
from tenants.grants.types import Overcommit
from tenants.models import Grant, QuotaLine
from tenants.requests.decisions import queries as decision_queries

# Ids of a team and a class.
TeamClass = tuple[int, int]


@dataclass(frozen=True)
class DecisionContext:
    """The facts for decisions about some classes, at one instant. By class id: `steps`, the units allocated to teams
    from `at` on; `capacities`, as the mirror shows them. `totals`: base grants that have not ended, of teams with
    pending requests.
    """

    at: datetime
    classes: Mapping[int, GpuClass]
    capacities: Mapping[int, Capacity]
    steps: Mapping[int, list[Step]]
    totals: Mapping[TeamClass, list[Promise]]

    def limit(self, class_id: int) -> int | None:
        """None: unknown."""
        return self.capacities[class_id].limit(self.classes[class_id])

    def pool(self) -> dict[int, str]:
        return {
            pk: decision_queries.pool_sentence(one, self.capacities[pk], self.steps[pk][0].units)
            for pk, one in self.classes.items()
        }

    def change(self, holding: TeamClass, kind: str, asked: Promise) -> Change | None:
        """Returns what approving changes from now on, like a late decision; None: the line's period has ended."""
        if asked.end <= self.at:
            return None
        late = Promise(asked.units, max(asked.start, self.at), asked.end)
        return combined_promises.promise_change(
            late, replaced=() if kind == QuotaLine.Kind.BOOST else self.totals.get(holding, ())
        )

    def base(self, holding: TeamClass, kind: str, asked: Promise) -> int:
        """The total in force where the line starts; 0 for a temporary increase, which adds to it and replaces
        nothing.
        """
        if kind == QuotaLine.Kind.BOOST:
            return 0
        return combined_promises.total_at(self.totals.get(holding, ()), max(asked.start, self.at))

    def excess(self, class_id: int, change: Change) -> Overcommit | None:
        """With an unknown limit any growth is an overcommit."""
        limit = self.limit(class_id)
        found = combined_promises.excess_intervals(self.steps[class_id], change, limit or 0)
        units = max((one.units for one in found), default=0)
        return Overcommit(self.classes[class_id].name, units, limit) if units else None


def decision_context(class_ids: Collection[int], tenant_ids: Collection[int], *, at: datetime) -> DecisionContext:
    """About six queries."""
    classes = {one.pk: one for one in GpuClass.objects.filter(pk__in=class_ids).select_related("cluster", "successor")}
    capacities = capacity_queries.capacities(next(iter(classes.values())).cluster, classes.values()) if classes else {}
    return DecisionContext(
        at,
        classes,
        capacities,
        overcommit_queries.promise_steps(class_ids, at=at),
        base_promises(class_ids, tenant_ids, at),
    )


def base_promises(
    class_ids: Collection[int], tenant_ids: Collection[int], at: datetime
) -> dict[TeamClass, list[Promise]]:
    """One query."""
    totals: dict[TeamClass, list[Promise]] = defaultdict(list)
    running = Grant.objects.filter(
        gpu_class__in=class_ids, tenant__in=tenant_ids, kind=Grant.Kind.BASE, period__endswith__gte=at
    )
    # As plain values: every team with a request has some, and a model instance costs several times as much.
    for tenant_id, class_id, units, period, grace in running.values_list(
        "tenant_id", "gpu_class_id", "units", "period", "grace"
    ):
        totals[tenant_id, class_id].append(Promise(units, period.lower, period.upper, grace))
    return totals
