"""What all teams together are promised of classes, over time. The database sums: no grant is read by itself."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from django.db import connection

from tenants.models import Grant
from tenants.promises import Step


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
