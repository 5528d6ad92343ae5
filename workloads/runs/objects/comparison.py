"""How runs and the Jobs in the cluster differ, above all when rows were restored that are older than the cluster.

An owner label alone does not say that a Job belongs to a row: see `cluster.manifests.metadata.names_other_row`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from django.db import connection

from cluster.models import AppliedObject, Cluster, MirrorJob
from portal.core.due import table_label
from tenants.models import Namespace, Tenant
from workloads.core.workload_sql import of_same_run
from workloads.models import Run, Workload


class JobState(Enum):
    """`RECORDED`: a run owns it. `ORPHAN`: its workload has no row. `UNRECORDED`: its workload has no such run.
    `DUPLICATE`: the same, and another run of the workload is active.
    """

    RECORDED = "recorded"
    ORPHAN = "orphan"
    UNRECORDED = "unrecorded"
    DUPLICATE = "duplicate"


@dataclass(frozen=True)
class ComparedJob:
    """`run_id` None: no run owns it. `is_over`: it uses no units any more."""

    namespace: str
    name: str
    uid: str
    created_at: datetime
    owner: str
    run_id: int | None
    state: JobState
    is_over: bool


@dataclass(frozen=True)
class RunWithoutJob:
    """An active run. `was_sent`: its Job was created and is gone; otherwise a worker creates it next."""

    team: str
    workload: str
    number: int
    requested_at: datetime
    was_sent: bool


def compared_jobs(cluster: Cluster) -> list[ComparedJob]:
    """Every Job of a workload in the cluster, oldest first. Call it only while the mirror is current. One query."""
    rows = _rows(_JOBS, [f"{table_label(Workload)}.", cluster.pk])
    return [
        ComparedJob(namespace, name, uid, created_at, owner, run_id, JobState(state), is_over)
        for namespace, name, uid, created_at, owner, run_id, state, is_over in rows
    ]


def runs_without_job(cluster: Cluster) -> list[RunWithoutJob]:
    """Active runs that nobody asked to stop, oldest first. Call it only while the mirror is current. One query."""
    return [RunWithoutJob(*row) for row in _rows(_RUNS, [cluster.pk])]


def _rows(statement: str, values: Sequence[int | str]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())


def _is_true(condition: str) -> str:
    return f"""job.record -> 'conditions' @> '[{{"type": "{condition}", "status": "True"}}]'"""


_ACTIVE = (
    f"EXISTS (SELECT 1 FROM {Run._meta.db_table} other WHERE other.workload_id = workload.id AND ended_at IS NULL)"
)
_JOBS = f"""
SELECT job.namespace, job.name, job.uid, job.created_at, job.owner, run.id,
       CASE WHEN run.id IS NOT NULL THEN '{JobState.RECORDED.value}'
            WHEN workload.id IS NULL THEN '{JobState.ORPHAN.value}'
            WHEN {_ACTIVE} THEN '{JobState.DUPLICATE.value}'
            ELSE '{JobState.UNRECORDED.value}' END,
       {_is_true("Complete")} OR {_is_true("Failed")}
  FROM {MirrorJob._meta.db_table} job
  LEFT JOIN ({Workload._meta.db_table} workload
             JOIN {Namespace._meta.db_table} namespace ON namespace.id = workload.namespace_id)
    ON job.owner = %s || workload.id AND workload.deleted_at IS NULL
   AND namespace.cluster_id = job.cluster_id AND namespace.name = job.namespace
  LEFT JOIN {Run._meta.db_table} run
    ON run.workload_id = workload.id AND job.name = workload.name || '-' || run.number AND {of_same_run("job")}
 WHERE job.cluster_id = %s AND job.owner LIKE '{table_label(Workload)}.%%' AND job.deleting_since IS NULL
 ORDER BY job.created_at, job.namespace, job.name"""
_RUNS = f"""
SELECT tenant.slug, workload.name, run.number, run.requested_at, sent.id IS NOT NULL
  FROM {Run._meta.db_table} run
  JOIN {Workload._meta.db_table} workload ON workload.id = run.workload_id
  JOIN {Namespace._meta.db_table} namespace ON namespace.id = workload.namespace_id
  JOIN {Tenant._meta.db_table} tenant ON tenant.id = workload.tenant_id
  LEFT JOIN {AppliedObject._meta.db_table} sent
    ON sent.cluster_id = namespace.cluster_id AND sent.kind = 'Job' AND sent.namespace = namespace.name
   AND sent.name = workload.name || '-' || run.number AND sent.result = '{AppliedObject.Result.APPLIED.value}'
 WHERE namespace.cluster_id = %s AND run.ended_at IS NULL AND run.stop_requested_at IS NULL AND NOT EXISTS (
       SELECT 1 FROM {MirrorJob._meta.db_table} job
        WHERE job.cluster_id = namespace.cluster_id AND job.namespace = namespace.name
          AND job.name = workload.name || '-' || run.number
          AND CASE WHEN sent.id IS NULL THEN {of_same_run("job")} ELSE job.uid = sent.uid END)
 ORDER BY run.requested_at, run.id"""
