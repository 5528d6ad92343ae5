"""A workload's run that has not ended, with what its end depends on beside its own columns."""

from __future__ import annotations

from typing import Any

from django.db import connection

from catalog.models import GpuClass
from portal.sql import columns, instance
from tenants.models import Namespace
from workloads import leaving
from workloads.models import Run, Workload

LifeCycle = GpuClass.LifeCycle


def alive(workload: Workload) -> Any:
    """None: all have ended. `closes_at`: None while the team is not closed; `runs_until`: None while the class stays;
    `may_launch`: who asked for it still may. One query, as text: somebody waits for the first look at a run.
    """
    with connection.cursor() as cursor:
        cursor.execute(_ALIVE, [workload.pk])
        found = cursor.fetchone()
    if found is None:
        return None
    values = iter(found)
    run: Any = instance(Run, values)
    run.workload = workload
    run.closes_at, run.cluster_id, run.class_name, run.runs_until, run.may_launch = values
    return run


_ALIVE = f"""
SELECT {columns(Run, "run")}, namespace.closes_at, namespace.cluster_id, class.name AS class_name,
       CASE WHEN class.life_cycle IN ('{LifeCycle.RETIRING}', '{LifeCycle.RETIRED}') THEN class.runs_until END
       AS runs_until, {leaving.MAY_LAUNCH} AS may_launch
  FROM {Run._meta.db_table} run
  JOIN {Workload._meta.db_table} workload ON workload.id = run.workload_id
  JOIN {Namespace._meta.db_table} namespace ON namespace.id = workload.namespace_id
  LEFT JOIN {GpuClass._meta.db_table} class
    ON class.cluster_id = namespace.cluster_id AND class.slug = run.spec ->> 'gpu_class'
 WHERE run.workload_id = %s AND run.ended_at IS NULL"""
