"""Runs whose record, mirror and cluster objects disagree for longer than a change takes to arrive."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from cluster.models import AppliedObject, Cluster, MirrorJob, MirrorPod, MirrorWorkload
from tenants.models import Namespace, Tenant
from workloads.core.workload_sql import IDENTITY, of_same_run
from workloads.models import Run, Workload

SHOWN = 50
# A later update than this was missed; an earlier one is only slow.
PATIENCE_S = 60
# A worker that has leased the row, or was just woken for it, is about to record it.
WOKEN_S = 30
# The job of an ended run stays for an hour (workloads.runs.kept.kept_logs.KEEP_FINISHED_JOB).
KEPT_S = 3900


@dataclass(frozen=True)
class Inconsistency:
    """`since`: at least since then."""

    code: str
    team: str
    workload: str
    run: int
    since: datetime
    sentence: str
    do: str


@dataclass(frozen=True)
class _Said:
    sentence: str
    do: str


_WORKER = "Check that a worker is running and whether Failing tasks lists this workload. Stop and start the workload."
_SAID = {
    "job_gone": _Said("the run is active, but its Job is not in the cluster", _WORKER),
    "job_left": _Said(
        "the run has ended, but its Job is still in the cluster",
        "If the Job still uses units, delete it with kubectl. Its run is already recorded.",
    ),
    "job_unrecorded": _Said(
        "a Job of the workload has this number, but no such run is recorded",
        "The database may have been restored from a backup. `manage.py compare` lists the decisions.",
    ),
    "admission_unrecorded": _Said("Kueue admitted the workload, but the run does not record it", _WORKER),
    "not_in_queue": _Said(
        "the Job is suspended, but Kueue has no Workload for it",
        "Check Kueue's controller manager: it is not running, or it does not manage Jobs of this namespace.",
    ),
    "no_pod": _Said(
        "Kueue admitted the workload, but it has no pod",
        "Check the events of its Job: a ResourceQuota, the Pod Security level or a webhook rejects the pod. The "
        "page of the workload shows which.",
    ),
}


def inconsistencies(cluster: Cluster) -> list[Inconsistency]:
    """Oldest first, at most SHOWN. Call it only while the mirror is current. One query."""
    values = {
        "cluster": cluster.pk,
        "kueue": cluster.has_kueue,
        "patience": PATIENCE_S,
        "woken": WOKEN_S,
        "kept": KEPT_S,
        "shown": SHOWN,
    }
    with connection.cursor() as cursor:
        cursor.execute(_FOUND, values)
        rows = cursor.fetchall()
    return [
        Inconsistency(code, team, workload, run, since, _SAID[code].sentence, _SAID[code].do)
        for code, team, workload, run, since in rows
    ]


def _true(record: str, condition: str) -> str:
    """Since when the condition is true; NULL if it is not."""
    return f"""(SELECT (one ->> 'since')::timestamptz FROM jsonb_array_elements({record} -> 'conditions') one
        WHERE one ->> 'type' = '{condition}' AND one ->> 'status' = 'True')"""


_FOUND = f"""
WITH run AS (
    SELECT workload.name AS workload, tenant.slug AS team, namespace.name AS namespace, run.number,
           workload.name || '-' || run.number AS job, run.admitted_at, run.ended_at,
           'workloads.workload.' || workload.id AS owner, {IDENTITY} AS identity
      FROM {Run._meta.db_table} run
      JOIN {Workload._meta.db_table} workload ON workload.id = run.workload_id
      JOIN {Namespace._meta.db_table} namespace ON namespace.id = workload.namespace_id
      JOIN {Tenant._meta.db_table} tenant ON tenant.id = workload.tenant_id
     WHERE namespace.cluster_id = %(cluster)s
       AND (workload.leased_until IS NULL OR workload.leased_until <= now())
       AND (workload.due_at IS NULL OR workload.due_at NOT BETWEEN now() - %(woken)s * interval '1 second' AND now())
), job AS (
    SELECT run.*, job.uid, job.record, job.created_at
      FROM {MirrorJob._meta.db_table} job
      JOIN run ON run.namespace = job.namespace AND run.job = job.name AND run.owner = job.owner
     WHERE job.cluster_id = %(cluster)s AND job.deleting_since IS NULL AND {of_same_run("job", "run.identity")}
), queued AS (
    SELECT job.*, {_true("queued.record", "Admitted")} AS since,
           {_true("queued.record", "Finished")} AS finished, {_true("queued.record", "Evicted")} AS evicted
      FROM job JOIN {MirrorWorkload._meta.db_table} queued
        ON queued.cluster_id = %(cluster)s AND queued.job_uid = job.uid
     WHERE job.ended_at IS NULL
), found AS (
    SELECT 'job_gone' AS code, team, workload, number, sent.sent_at AS since
      FROM run JOIN {AppliedObject._meta.db_table} sent
        ON sent.cluster_id = %(cluster)s AND sent.kind = 'Job' AND sent.namespace = run.namespace
       AND sent.name = run.job AND sent.result = '{AppliedObject.Result.APPLIED.value}'
     WHERE run.ended_at IS NULL AND NOT EXISTS (
           SELECT 1 FROM {MirrorJob._meta.db_table} job
            WHERE job.cluster_id = %(cluster)s AND job.namespace = run.namespace AND job.name = run.job)
    UNION ALL
    SELECT 'job_left', team, workload, number, ended_at FROM job
     WHERE ended_at IS NOT NULL AND (
           {_true("record", "Complete")} IS NULL AND {_true("record", "Failed")} IS NULL
           OR ended_at < now() - %(kept)s * interval '1 second')
    UNION ALL
    SELECT 'job_unrecorded', tenant.slug, workload.name, substring(job.name from '[0-9]+$')::int, job.created_at
      FROM {MirrorJob._meta.db_table} job
      JOIN {Workload._meta.db_table} workload
        ON job.owner = 'workloads.workload.' || workload.id AND workload.deleted_at IS NULL
      JOIN {Namespace._meta.db_table} namespace
        ON namespace.id = workload.namespace_id AND namespace.cluster_id = %(cluster)s
       AND namespace.name = job.namespace
      JOIN {Tenant._meta.db_table} tenant ON tenant.id = workload.tenant_id
     WHERE job.cluster_id = %(cluster)s AND job.deleting_since IS NULL
       AND job.name ~ ('^' || workload.name || '-[0-9]{{1,9}}$') AND NOT EXISTS (
           SELECT 1 FROM {Run._meta.db_table} run
            WHERE run.workload_id = workload.id AND job.name = workload.name || '-' || run.number
              AND {of_same_run("job")})
    UNION ALL
    SELECT 'admission_unrecorded', team, workload, number, since FROM queued WHERE admitted_at IS NULL
    UNION ALL
    SELECT 'not_in_queue', team, workload, number, created_at FROM job
     WHERE %(kueue)s AND ended_at IS NULL AND (record ->> 'suspend')::boolean AND NOT EXISTS (
           SELECT 1 FROM {MirrorWorkload._meta.db_table} queued
            WHERE queued.cluster_id = %(cluster)s AND queued.job_uid = job.uid)
    UNION ALL
    SELECT 'no_pod', team, workload, number, since FROM queued
     WHERE finished IS NULL AND evicted IS NULL AND NOT EXISTS (
           SELECT 1 FROM {MirrorPod._meta.db_table} pod
            WHERE pod.cluster_id = %(cluster)s AND pod.namespace = queued.namespace AND pod.run = queued.job)
)
SELECT code, team, workload, number, since FROM found
 WHERE since < now() - %(patience)s * interval '1 second'
 ORDER BY since, team, workload, code LIMIT %(shown)s"""
