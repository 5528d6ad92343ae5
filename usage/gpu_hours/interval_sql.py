"""How long units were held within a period, as SQL: only allocation intervals count, so that a run that is queued, also
after a preemption, uses nothing.
"""

from __future__ import annotations

from catalog.models import GpuClass
from workloads.models import AllocationInterval, Run

# One row per interval that reaches into the period from %(since)s to %(at)s: user_id, is_whole, gpu_hours (GPU
# equivalents × hours) and cost. user_id is null for pods of no run. A condition on `held` follows.
HELD = f"""
SELECT run.requested_by_id AS user_id, class.partition = 'none' AND class.sharing = 'none' AS is_whole,
       held.weight * spent.unit_hours AS gpu_hours, held.price_per_unit_hour * spent.unit_hours AS cost
  FROM {AllocationInterval._meta.db_table} held
  LEFT JOIN {Run._meta.db_table} run ON run.id = held.run_id
  JOIN {GpuClass._meta.db_table} class ON class.id = held.gpu_class_id
 CROSS JOIN LATERAL (
       SELECT held.units * extract(epoch FROM least(coalesce(held.ends_at, %(at)s), %(at)s)
              - greatest(held.starts_at, %(since)s)) / 3600 AS unit_hours) spent
 WHERE held.starts_at < %(at)s AND (held.ends_at IS NULL OR held.ends_at > %(since)s)"""
