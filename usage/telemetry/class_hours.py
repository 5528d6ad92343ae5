"""What was measured of a class in an hour: the sum over its runs, from their hours.

An hour is summed up again whenever a minute of it or of the hour after it was read, so that late minutes, minutes that
are read twice and a worker of an earlier release leave nothing wrong. Without these sums, a chart of 30 days would read
720 rows of each run.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db import connection

from catalog.models import GpuClass
from usage.telemetry.models import ClassHour, RunHour
from usage.telemetry.types import HOUR
from workloads.models import AllocationInterval


def sum_up(cluster_id: int, hours: Iterable[datetime]) -> None:
    """The caller has locked the cluster's source, so that no hour of its runs is written meanwhile. One query."""
    again = {moment for hour in hours for moment in (hour - HOUR, hour)}
    with connection.cursor() as cursor:
        cursor.execute(_SUM_UP, {"cluster": cluster_id, "hours": sorted(again)})


# Shared GPUs are not in the sums. Units of a run's hour are those of its interval; they are frozen with the run.
_SUM_UP = f"""
INSERT INTO {ClassHour._meta.db_table} (gpu_class_id, hour, measured_hours, busy_hours)
SELECT hour.gpu_class_id, hour.hour, sum(run.units * bit_count(hour.seen_minutes::bit(64))) / 60.0,
       sum(run.units * hour.activity_sum) / 6000
  FROM {RunHour._meta.db_table} hour
  JOIN {GpuClass._meta.db_table} class ON class.id = hour.gpu_class_id AND class.cluster_id = %(cluster)s
 CROSS JOIN LATERAL (SELECT units FROM {AllocationInterval._meta.db_table} WHERE run_id = hour.run_id LIMIT 1) run
 WHERE hour.hour = ANY(%(hours)s) AND hour.measure <> '{RunHour.Measure.SHARED}'
 GROUP BY hour.gpu_class_id, hour.hour
    ON CONFLICT (gpu_class_id, hour) DO UPDATE
   SET measured_hours = excluded.measured_hours, busy_hours = excluded.busy_hours"""
