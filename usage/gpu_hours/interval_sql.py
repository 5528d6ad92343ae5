"""What was held within a period, as SQL: only allocation intervals count, so that a run that is queued, also after a
preemption, uses nothing.
"""

from __future__ import annotations

from catalog.models import GpuClass
from workloads.models import AllocationInterval, Run

# As the index allocation_by_period has it. An interval of no length overlaps with nothing.
PERIOD_HELD = "tstzrange(held.starts_at, held.ends_at)"
# One row per interval that reaches into the period from %(since)s to %(at)s, with the part that lies in it. GPU-hours
# are weight × unit_seconds / 3600, the cost is price_per_unit_hour × unit_seconds / 3600: divide the sum, because a
# quotient is not exact. user_id is null for pods of no run. A condition on `held` follows.
HELD = f"""
SELECT run.requested_by_id AS user_id, held.namespace_id, held.gpu_class_id, held.priority, held.is_exact,
       class.partition = 'none' AND class.sharing = 'none' AS is_whole, held.weight, held.price_per_unit_hour,
       held.units * extract(epoch FROM least(coalesce(held.ends_at, %(at)s), %(at)s)
              - greatest(held.starts_at, %(since)s)) AS unit_seconds
  FROM {AllocationInterval._meta.db_table} held
  LEFT JOIN {Run._meta.db_table} run ON run.id = held.run_id
  JOIN {GpuClass._meta.db_table} class ON class.id = held.gpu_class_id
 WHERE {PERIOD_HELD} && tstzrange(%(since)s, %(at)s)"""
