"""Once a minute, records how many units each class has on ready nodes, as intervals in which the number is the same.

Only while the mirror is current: otherwise the interval is not prolonged, and the time until the next one is not
recorded. Storage has no units on nodes, and classes that are not open are not offered: neither is recorded.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from catalog.classes.capacity.queries import capacities
from catalog.classes.queries import open_classes
from cluster.models import Cluster
from usage.samples.models import CapacityInterval

# A minute that is late or missing is bridged; the number before it counts until the next time it is seen.
BRIDGED = timedelta(minutes=3)


def record_capacity(cluster: Cluster, *, at: datetime) -> None:
    """The caller sees to it that a minute is recorded once, and none after a later one. Four or five queries."""
    found = capacities(cluster, list(open_classes(cluster)))
    seen = {pk: one.allocatable for pk, one in found.items() if one.is_current and one.allocatable is not None}
    if not seen:
        return
    values: dict[str, Any] = {"classes": [*seen], "units": [*seen.values()], "at": at, "since": at - BRIDGED}
    with connection.cursor() as cursor:
        cursor.execute(_PROLONG, values)
        cursor.execute(_BEGIN, values)


_TABLE = CapacityInterval._meta.db_table
_PROLONG = f"""
UPDATE {_TABLE} known SET ends_at = %(at)s
 WHERE known.gpu_class_id = ANY(%(classes)s) AND known.ends_at >= %(since)s AND NOT EXISTS (
       SELECT FROM {_TABLE} later
        WHERE later.gpu_class_id = known.gpu_class_id AND later.starts_at > known.starts_at)"""
_BEGIN = f"""
INSERT INTO {_TABLE} (gpu_class_id, units, starts_at, ends_at)
SELECT seen.gpu_class_id, seen.units, %(at)s, %(at)s
  FROM unnest(%(classes)s::bigint[], %(units)s::int[]) seen (gpu_class_id, units)
 WHERE NOT EXISTS (
       SELECT FROM {_TABLE} known
        WHERE known.gpu_class_id = seen.gpu_class_id AND known.units = seen.units AND known.ends_at = %(at)s)"""
