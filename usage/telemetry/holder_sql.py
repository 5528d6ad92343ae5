"""Which runs held units in a period, as SQL: one row per interval, with the name of the run's Job."""

from __future__ import annotations

from catalog.models import GpuClass
from tenants.models import Namespace
from usage.gpu_hours.interval_sql import PERIOD_HELD
from usage.telemetry.models import RunHour
from workloads.models import AllocationInterval, Run, Workload

_Measure = RunHour.Measure
HOLDERS = f"""
SELECT namespace.name, workload.name || '-' || run.number, run.id, held.namespace_id, held.gpu_class_id,
       CASE WHEN class.sharing <> 'none' THEN '{_Measure.SHARED}'
            WHEN class.partition <> 'none' THEN '{_Measure.ENGINE}' ELSE '{_Measure.UTILISATION}' END,
       held.units, coalesce((run.spec ->> 'workers')::int, 1) > 1, held.starts_at, coalesce(held.ends_at, %(until)s)
  FROM {AllocationInterval._meta.db_table} held
  JOIN {Run._meta.db_table} run ON run.id = held.run_id
  JOIN {Workload._meta.db_table} workload ON workload.id = run.workload_id
  JOIN {Namespace._meta.db_table} namespace ON namespace.id = held.namespace_id
  JOIN {GpuClass._meta.db_table} class ON class.id = held.gpu_class_id
 WHERE {PERIOD_HELD} && tstzrange(%(since)s, %(until)s) AND namespace.cluster_id = %(cluster)s"""
