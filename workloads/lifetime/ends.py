"""Wakes runs that end because of rows of other apps: their class is retired, or their team is closed.

The row of a run has a clock for the end that was known at its last look. Who sets another one later, an operator, a
file or an import, knows nothing of runs.
"""

from __future__ import annotations

from datetime import timedelta

from django.db import connection

from catalog.models import GpuClass
from portal.core.due import wake
from tenants.models import Namespace
from workloads.models import Run, Workload

# Rows that are due by then look in time by themselves: a run that is being stopped looks at least this often.
IN_TIME = timedelta(minutes=1)


def wake_ended_runs() -> int:
    """One query if there is none; its cost does not grow with the runs that continue."""
    with connection.cursor() as cursor:
        cursor.execute(_ENDED, [IN_TIME.total_seconds()] * 2)
        ended = [pk for (pk,) in cursor.fetchall()]
    return wake(Workload, ended) if ended else 0


LifeCycle = GpuClass.LifeCycle
# The class that the run was started on: the workload may be declared with another one by now.
_ENDED = f"""
SELECT workload.id
  FROM {GpuClass._meta.db_table} class
  JOIN {Run._meta.db_table} run ON run.spec ->> 'gpu_class' = class.slug AND run.ended_at IS NULL
  JOIN {Workload._meta.db_table} workload ON workload.id = run.workload_id
  JOIN {Namespace._meta.db_table} namespace
    ON namespace.id = workload.namespace_id AND namespace.cluster_id = class.cluster_id
 WHERE class.life_cycle IN ('{LifeCycle.RETIRING}', '{LifeCycle.RETIRED}') AND class.runs_until <= now()
   AND workload.due_at > now() + make_interval(secs => %s) AND workload.attempts = 0
 UNION
SELECT workload.id
  FROM {Namespace._meta.db_table} namespace
  JOIN {Workload._meta.db_table} workload ON workload.namespace_id = namespace.id
  JOIN {Run._meta.db_table} run ON run.workload_id = workload.id AND run.ended_at IS NULL
 WHERE namespace.closes_at <= now() AND namespace.gone_at IS NULL
   AND workload.due_at > now() + make_interval(secs => %s) AND workload.attempts = 0"""
