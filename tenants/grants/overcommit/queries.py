"""What is allocated of classes to all teams over time, and the effect of one more grant.

The database sums the units; single grants are not read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection
from django.db.models import QuerySet

from catalog.classes import queries as class_queries
from catalog.models import GpuClass
from tenants.grants import combined_promises, promises
from tenants.grants import types as grant_types
from tenants.grants.promises import Promise, Step
from tenants.grants.types import Overcommit
from tenants.models import Grant

# The chart also shows the drop at the end of the requested period.
CURVE_AFTERWARDS = timedelta(days=7)


def promise_of(grant: Grant) -> Promise:
    return Promise(grant.units, grant.period.lower, grant.period.upper, grant.grace)


@dataclass(frozen=True)
class PromisedUnits:
    """By class id, from `at` on: `steps` of all teams together; `own`: the grants of one team that are not over."""

    at: datetime
    steps: Mapping[int, list[Step]]
    own: Sequence[Grant]

    def held(self, class_id: int) -> int:
        return sum(one.units for one in self.own if one.gpu_class_id == class_id and one.period.lower <= self.at)

    def base(self, class_id: int) -> int:
        """The running total, without temporary increases."""
        return sum(one.units for one in self.bases(class_id) if one.period.lower <= self.at)

    def bases(self, class_id: int) -> list[Grant]:
        return [one for one in self.own if one.gpu_class_id == class_id and one.kind == Grant.Kind.BASE]

    def excess(self, gpu_class: GpuClass, asked: Promise, *, is_base: bool, limit: int | None) -> Overcommit | None:
        """Returns by how much this grant exceeds the limit of the class, if at some instant it exceeds it by more than
        it is exceeded already. A new base total ends the team's running one when it starts. `limit` None: any growth is
        an overcommit.
        """
        replaced = [promise_of(one) for one in self.bases(gpu_class.pk)] if is_base else []
        found = combined_promises.excess_intervals(
            self.steps[gpu_class.pk], combined_promises.promise_change(asked, replaced=replaced), limit or 0
        )
        units = max((one.units for one in found), default=0)
        return Overcommit(gpu_class.name, units, limit) if units else None


def promised_of(tenant_id: int, class_ids: Collection[int], *, at: datetime) -> PromisedUnits:
    """Two queries."""
    own = Grant.objects.filter(tenant=tenant_id, gpu_class__in=class_ids, period__endswith__gt=at).order_by("pk")
    return PromisedUnits(at, promise_steps(class_ids, at=at), list(own))


def promise_steps(class_ids: Collection[int], *, at: datetime) -> dict[int, list[Step]]:
    """Returns steps by class from `at` on, at least one each. One query; its rows are the days with a change."""
    changes: dict[int, list[tuple[datetime, int]]] = {pk: [] for pk in class_ids}
    with connection.cursor() as cursor:
        cursor.execute(_CHANGES, {"at": at, "classes": list(class_ids)})
        for pk, edge, units in cursor.fetchall():
            changes[pk].append((edge, units))
    return {pk: _steps(found, at) for pk, found in changes.items()}


def _steps(changes: Sequence[tuple[datetime, int]], at: datetime) -> list[Step]:
    # At the end nothing is allocated, so the units allocated now are those that expire from now on minus those that
    # start.
    units = -sum(change for _, change in changes)
    found = [Step(at, units)]
    for edge, change in changes:
        units += change
        found.append(Step(edge, units))
    return found


# Class by class, so that each half reads only the index entries of grants that are not over.
_CHANGES = f"""
SELECT class.id, edge, sum(change)::bigint
  FROM unnest(%(classes)s::bigint[]) AS class (id), LATERAL (
         SELECT upper(period) AS edge, -sum(units) AS change FROM {Grant._meta.db_table}
          WHERE gpu_class_id = class.id AND upper(period) > %(at)s GROUP BY edge
         UNION ALL
         SELECT lower(period) AS edge, sum(units) AS change FROM {Grant._meta.db_table}
          WHERE gpu_class_id = class.id AND lower(period) > %(at)s GROUP BY edge
       ) AS changes
 GROUP BY class.id, edge ORDER BY class.id, edge"""


def overcommit_of(
    tenant_id: int, gpu_class: GpuClass, promised: Promise, *, is_base: bool, limit: int | None, at: datetime
) -> grant_types.Overcommit | None:
    """Returns by how much this grant exceeds the limit of the class, if at some instant it exceeds it by more than it
    is exceeded already.

    `limit` None: any growth is an overcommit.
    """
    before, after = promises_before_and_after(tenant_id, gpu_class, promised, is_base=is_base, at=at)
    units = promises.adds_excess(before, after, limit or 0, promised.start, promised.end)
    return grant_types.Overcommit(gpu_class.name, units, limit) if units else None


def promises_before_and_after(
    tenant_id: int, gpu_class: GpuClass, promised: Promise, *, is_base: bool, at: datetime
) -> tuple[list[Promise], list[Promise]]:
    """Returns what is allocated of the class to all teams, without and with this grant. One query.

    A new base total ends the team's running one when it starts.
    """
    return _before_and_after(Grant.objects.filter(gpu_class=gpu_class), tenant_id, promised, is_base=is_base, at=at)


def own_promises_before_and_after(
    tenant_id: int, class_id: int, promised: Promise, *, at: datetime
) -> tuple[list[Promise], list[Promise]]:
    """Like `promises_before_and_after`, for this team alone and a new base total. One query."""
    own = Grant.objects.filter(gpu_class_id=class_id, tenant_id=tenant_id)
    return _before_and_after(own, tenant_id, promised, is_base=True, at=at)


def _before_and_after(
    grants: QuerySet[Grant], tenant_id: int, promised: Promise, *, is_base: bool, at: datetime
) -> tuple[list[Promise], list[Promise]]:
    before, after = [], [promised]
    for grant in grants.filter(period__endswith__gt=at):
        found = promise_of(grant)
        before.append(found)
        is_replaced = is_base and grant.tenant_id == tenant_id and grant.kind == Grant.Kind.BASE
        if is_replaced and found.start < promised.start:
            found = Promise(found.units, found.start, min(found.end, promised.start))
        after.append(found)
    return before, after


@dataclass(frozen=True)
class PromiseCurve:
    """Steps from `start` on, over all teams, as portal/ui/promise_curve.py draws them. `limit` None: not known."""

    name: str
    unit: str
    before: tuple[Step, ...]
    after: tuple[Step, ...]
    limit: int | None
    start: datetime
    end: datetime


def promise_curve(
    tenant_id: int, gpu_class: GpuClass, promised: Promise, *, is_base: bool, limit: int | None, at: datetime
) -> PromiseCurve:
    """From now to a week after the grant's end. One query."""
    before, after = promises_before_and_after(tenant_id, gpu_class, promised, is_base=is_base, at=at)
    end = promised.end + CURVE_AFTERWARDS
    return PromiseCurve(
        name=gpu_class.name,
        unit=class_queries.unit_of(gpu_class),
        before=tuple(promises.curve(before, at, end)),
        after=tuple(promises.curve(after, at, end)),
        limit=limit,
        start=at,
        end=end,
    )
