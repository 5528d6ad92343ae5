"""The SQL of the queue, and a row of its result."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cluster.models import MirrorJob, MirrorWorkload
from tenants.models import Namespace, Tenant
from workloads.core.unit_sql import TOTAL_UNITS
from workloads.core.workload_sql import of_same_run
from workloads.models import Run, Workload

# Runs without reserved quota in Kueue, and runs not yet in Kueue. A preempted run is queued again.
_WAITING = f"""
WITH waiting AS (
    SELECT run.spec ->> 'gpu_class' AS gpu_class, tenant.slug AS team, (queued.id IS NULL)::int AS is_outside,
           -coalesce((queued.record ->> 'priority')::int, 0) AS lower,
           coalesce(queued.created_at, run.requested_at) AS since,
           coalesce(queued.uid, '') COLLATE "C" AS uid, run.id AS run, run.number,
           workload.id AS workload_id, workload.name AS workload, workload.kind, run.spec ->> 'image' AS image,
           {TOTAL_UNITS} AS units, run.requested_at, namespace.wanted,
           workload.name || '-' || run.number AS job_name, job.uid AS job_uid,
           coalesce(run.spec ->> 'priority', '') AS launched_as, run.priority AS changed_to,
           coalesce(queued.record ->> 'priority_class', '') AS known_as,
           coalesce((run.spec ->> 'workers')::int, 1) AS workers, (run.spec ->> 'units')::int AS each,
           CASE WHEN (run.spec ->> 'topology_required')::boolean THEN run.spec ->> 'topology_level'
                ELSE '' END AS level
      FROM {Run._meta.db_table} run
      JOIN {Workload._meta.db_table} workload ON workload.id = run.workload_id
      JOIN {Namespace._meta.db_table} namespace ON namespace.id = workload.namespace_id
      JOIN {Tenant._meta.db_table} tenant ON tenant.id = workload.tenant_id
      LEFT JOIN {MirrorJob._meta.db_table} job
        ON job.cluster_id = namespace.cluster_id AND job.namespace = namespace.name
       AND job.name = workload.name || '-' || run.number AND job.owner = 'workloads.workload.' || workload.id
       AND {of_same_run("job")}
      LEFT JOIN {MirrorWorkload._meta.db_table} queued
        ON queued.cluster_id = namespace.cluster_id AND queued.job_uid = job.uid
     WHERE namespace.cluster_id = %(cluster)s AND run.ended_at IS NULL AND run.stop_requested_at IS NULL
       AND CASE WHEN queued.id IS NULL THEN run.admitted_at IS NULL
                ELSE NOT queued.record -> 'conditions' @> '[{{"type": "QuotaReserved", "status": "True"}}]'
                 AND NOT queued.record -> 'conditions' @> '[{{"type": "Finished", "status": "True"}}]' END
)"""

SUMS = f"{_WAITING} SELECT gpu_class, count(*), sum(units), min(requested_at) FROM waiting GROUP BY 1"

COUNTS = f"""{_WAITING}
SELECT gpu_class, count(*), count(*) FILTER (WHERE team = ANY(%(teams)s)) FROM waiting GROUP BY 1"""

BY_TEAM = f"""{_WAITING}
SELECT team, count(*) FROM waiting WHERE team = ANY(%(teams)s) GROUP BY 1"""

# Of two runs created in the same second Kueue takes the one with the lower uid first.
_KEYS = "gpu_class, team, is_outside, lower, since, uid, run"

AFTER = f"AND ({_KEYS}) > (%(k0)s, %(k1)s, %(k2)s, %(k3)s, %(k4)s, %(k5)s, %(k6)s)"

PAGE = f"""{_WAITING.replace("{", "{{").replace("}", "}}")}, placed AS (
    SELECT waiting.*, row_number() OVER (
               PARTITION BY gpu_class, team ORDER BY is_outside, lower, since, uid, run) AS place
      FROM waiting
)
SELECT * FROM placed
 WHERE (%(class)s = '' OR gpu_class = %(class)s) AND (%(team)s = '' OR team = %(team)s) {{after}}
 ORDER BY {_KEYS} LIMIT %(limit)s"""


@dataclass(frozen=True)
class QueueRecord:
    gpu_class: str
    team: str
    is_outside: int
    lower: int
    since: datetime
    uid: str
    run: int
    number: int
    workload_id: int
    workload: str
    kind: str
    image: str
    units: int
    requested_at: datetime
    wanted: str
    job_name: str
    job_uid: str | None
    launched_as: str
    changed_to: str
    known_as: str
    workers: int
    # Units per worker.
    each: int
    # In one domain of which all workers have to be; "": none is required.
    level: str
    place: int
