"""What all teams together are promised of classes, over time. The database sums: no grant is read by itself."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from catalog.models import GpuClass
from tenants import joint
from tenants.models import Grant
from tenants.policy import Excess
from tenants.promises import Promise, Step


def promise_of(grant: Grant) -> Promise:
    return Promise(grant.units, grant.period.lower, grant.period.upper, grant.grace)


@dataclass(frozen=True)
class Promised:
    """Of some classes by their ids, from `at` on: `steps` of all teams together, `own`: one team's grants not over."""

    at: datetime
    steps: Mapping[int, list[Step]]
    own: Sequence[Grant]

    def held(self, class_id: int) -> int:
        return sum(one.units for one in self.own if one.gpu_class_id == class_id and one.period.lower <= self.at)

    def bases(self, class_id: int) -> list[Grant]:
        return [one for one in self.own if one.gpu_class_id == class_id and one.kind == Grant.Kind.BASE]

    def excess(self, gpu_class: GpuClass, asked: Promise, *, is_base: bool, limit: int | None) -> Excess | None:
        """Would this promise take the class over its limit at some instant, and higher than it is promised already?
        A new base total ends the team's running one when it starts. `limit` None: any growth is a promise in the dark.
        """
        replaced = [promise_of(one) for one in self.bases(gpu_class.pk)] if is_base else []
        found = joint.over(self.steps[gpu_class.pk], joint.change(asked, replaced=replaced), limit or 0)
        units = max((one.units for one in found), default=0)
        return Excess(gpu_class.name, units, limit) if units else None


def promised_of(tenant_id: int, class_ids: Collection[int], *, at: datetime) -> Promised:
    """Two queries."""
    own = Grant.objects.filter(tenant=tenant_id, gpu_class__in=class_ids, period__endswith__gt=at).order_by("pk")
    return Promised(at, steps(class_ids, at=at), list(own))


def steps(class_ids: Collection[int], *, at: datetime) -> dict[int, list[Step]]:
    """By class from `at` on, at least one each. One query; its rows are the days on which something changes."""
    changes: dict[int, list[tuple[datetime, int]]] = {pk: [] for pk in class_ids}
    with connection.cursor() as cursor:
        cursor.execute(_CHANGES, {"at": at, "classes": list(class_ids)})
        for pk, edge, units in cursor.fetchall():
            changes[pk].append((edge, units))
    return {pk: _steps(found, at) for pk, found in changes.items()}


def _steps(changes: Sequence[tuple[datetime, int]], at: datetime) -> list[Step]:
    # In the end nothing is promised: what is promised now is what falls away from now on, less what comes.
    units = -sum(change for _, change in changes)
    found = [Step(at, units)]
    for edge, change in changes:
        units += change
        found.append(Step(edge, units))
    return found


# Class by class, so that each half reads an index of what is not over yet and nothing else.
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
