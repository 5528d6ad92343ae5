"""What was provided, held, measured and busy of classes by day, as SQL.

Held and provided units change at moments. The unit-seconds of a day are those of the units at its beginning for the
whole day, plus units × the rest of the day for each change: every interval is looked at twice, however many days it
lasts.
"""

from __future__ import annotations

from catalog.models import GpuClass
from usage.gpu_hours.interval_sql import PERIOD_HELD
from usage.samples.models import CapacityInterval
from usage.telemetry.models import ClassHour
from workloads.models import AllocationInterval

# One row per class in %(classes)s and day on which units were held or their number was recorded. The last number that
# was seen holds until %(at)s if it was seen after %(recent)s. `recorded_hours`: of the day, those in which the number
# of units was recorded.
_DAYS = f"""
WITH day AS (
    SELECT *
      FROM unnest(%(starts)s::timestamptz[], %(ends)s::timestamptz[]) WITH ORDINALITY day (since, until, number)),
held AS (
    SELECT gpu_class_id, units, greatest(starts_at, %(since)s) AS starts_at,
           least(coalesce(ends_at, %(at)s), %(at)s) AS ends_at
      FROM {AllocationInterval._meta.db_table} held
     WHERE {PERIOD_HELD} && tstzrange(%(since)s, %(at)s) AND gpu_class_id = ANY(%(classes)s)),
provided AS (
    SELECT gpu_class_id, units, greatest(starts_at, %(since)s) AS starts_at,
           CASE WHEN ends_at >= %(recent)s AND lead(ends_at) OVER (PARTITION BY gpu_class_id ORDER BY starts_at) IS NULL
                THEN %(at)s ELSE least(ends_at, %(at)s) END AS ends_at
      FROM {CapacityInterval._meta.db_table}
     WHERE tstzrange(starts_at, ends_at, '[]') && tstzrange(%(since)s, %(at)s) AND gpu_class_id = ANY(%(classes)s)),
change (gpu_class_id, at, held, provided, recorded) AS (
    SELECT gpu_class_id, starts_at, units, 0, 0 FROM held
    UNION ALL SELECT gpu_class_id, ends_at, -units, 0, 0 FROM held
    UNION ALL SELECT gpu_class_id, starts_at, 0, units, 1 FROM provided
    UNION ALL SELECT gpu_class_id, ends_at, 0, -units, -1 FROM provided),
of_day AS (
    SELECT gpu_class_id, width_bucket(at, %(starts)s::timestamptz[]) AS number,
           sum(held) AS held, sum(held * extract(epoch FROM at - %(since)s)) AS held_from,
           sum(provided) AS provided, sum(provided * extract(epoch FROM at - %(since)s)) AS provided_from,
           sum(recorded) AS recorded, sum(recorded * extract(epoch FROM at - %(since)s)) AS recorded_from
      FROM change GROUP BY 1, 2),
seen AS (
    SELECT gpu_class_id, width_bucket(hour, %(starts)s::timestamptz[]) AS number, sum(measured_hours) AS measured,
           sum(busy_hours) AS busy
      FROM {ClassHour._meta.db_table}
     WHERE gpu_class_id = ANY(%(classes)s) AND hour >= %(since)s AND hour < %(at)s
     GROUP BY 1, 2),
total AS (
    SELECT class.id, class.slug, class.name, day.since, day.number,
           {{held}} AS held, {{provided}} AS provided, {{recorded}} AS recorded
      FROM {GpuClass._meta.db_table} class
     CROSS JOIN day
      LEFT JOIN of_day ON of_day.gpu_class_id = class.id AND of_day.number = day.number
     WHERE class.id = ANY(%(classes)s)
    WINDOW earlier AS (PARTITION BY class.id ORDER BY day.number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))
SELECT total.slug, total.since, total.held, CASE WHEN total.recorded > 0 THEN total.provided END, total.recorded,
       coalesce(seen.measured, 0), coalesce(seen.busy, 0)
  FROM total
  LEFT JOIN seen ON seen.gpu_class_id = total.id AND seen.number = total.number
 WHERE total.held > 0 OR total.recorded > 0
 ORDER BY total.slug, total.number"""
_HOURS = """(coalesce(sum(of_day.{0}) OVER earlier, 0) * extract(epoch FROM day.until - day.since)
            + coalesce(of_day.{0} * extract(epoch FROM day.until - %(since)s) - of_day.{0}_from, 0)) / 3600"""
CLASS_DAYS = _DAYS.format(**{name: _HOURS.format(name) for name in ("held", "provided", "recorded")})
