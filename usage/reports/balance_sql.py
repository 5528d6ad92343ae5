"""The capacity of every class in a period against what was held of it, as SQL.

Capacity, price and held units change at moments; between two of them all are constant, and each such step counts with
its seconds. Storage has no units on nodes.
"""

from __future__ import annotations

from catalog.models import ClassPrice, GpuClass
from usage.gpu_hours.interval_sql import PERIOD_HELD
from usage.samples.models import CapacityInterval
from workloads.models import AllocationInterval

# One row per class with recorded or held units, from %(since)s to %(at)s; sums are in seconds. The last number of units
# that was seen holds until %(at)s if it was seen after %(recent)s. Intervals of a class do not overlap, so that within
# a step `capacity` and `price` are those of one row; `known` is 1 if there is one.
BALANCES = f"""
WITH priced AS (
    SELECT gpu_class_id, price_per_unit_hour AS price, since AS starts_at,
           lead(since) OVER (PARTITION BY gpu_class_id ORDER BY since) AS ends_at
      FROM {ClassPrice._meta.db_table}
), seen AS (
    SELECT gpu_class_id, units, starts_at,
           CASE WHEN ends_at >= %(recent)s AND lead(ends_at) OVER (PARTITION BY gpu_class_id ORDER BY starts_at) IS NULL
                THEN %(at)s ELSE ends_at END AS ends_at
      FROM {CapacityInterval._meta.db_table}
     WHERE tstzrange(starts_at, ends_at, '[]') && tstzrange(%(since)s, %(at)s)
), recorded AS (
    SELECT gpu_class_id, seen.units, priced.price, greatest(seen.starts_at, priced.starts_at, %(since)s) AS starts_at,
           least(seen.ends_at, priced.ends_at, %(at)s) AS ends_at
      FROM seen JOIN priced USING (gpu_class_id)
), held AS (
    SELECT gpu_class_id, units, units * price_per_unit_hour AS cost, greatest(starts_at, %(since)s) AS starts_at,
           least(coalesce(ends_at, %(at)s), %(at)s) AS ends_at
      FROM {AllocationInterval._meta.db_table} held WHERE {PERIOD_HELD} && tstzrange(%(since)s, %(at)s)
), changes (gpu_class_id, at, capacity, price, known, held, held_cost) AS (
    SELECT gpu_class_id, starts_at, units, price, 1, 0, 0 FROM recorded WHERE starts_at < ends_at
    UNION ALL SELECT gpu_class_id, ends_at, -units, -price, -1, 0, 0 FROM recorded WHERE starts_at < ends_at
    UNION ALL SELECT gpu_class_id, starts_at, 0, 0, 0, units, cost FROM held
    UNION ALL SELECT gpu_class_id, ends_at, 0, 0, 0, -units, -cost FROM held
), steps AS (
    SELECT gpu_class_id, extract(epoch FROM lead(at) OVER following - at) AS seconds,
           sum(sum(capacity)) OVER following AS capacity, sum(sum(price)) OVER following AS price,
           sum(sum(known)) OVER following AS known, sum(sum(held)) OVER following AS held,
           sum(sum(held_cost)) OVER following AS held_cost
      FROM changes GROUP BY gpu_class_id, at WINDOW following AS (PARTITION BY gpu_class_id ORDER BY at)
)
SELECT class.slug, class.name,
       (SELECT min(first.starts_at) FROM {CapacityInterval._meta.db_table} first WHERE first.gpu_class_id = class.id),
       sum(known * seconds), sum(capacity * seconds), sum(capacity * price * seconds),
       sum(held * seconds) FILTER (WHERE known = 0), sum(held_cost * seconds) FILTER (WHERE known = 0),
       sum(greatest(held - capacity, 0) * seconds) FILTER (WHERE known > 0),
       sum(greatest(held - capacity, 0) * price * seconds) FILTER (WHERE known > 0),
       sum((held_cost - held * price) * seconds) FILTER (WHERE known > 0)
  FROM steps JOIN {GpuClass._meta.db_table} class ON class.id = steps.gpu_class_id
 GROUP BY class.id ORDER BY class.slug"""
