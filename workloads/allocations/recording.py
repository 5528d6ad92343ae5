"""Writes the intervals in which runs hold units, from what the watcher recorded of Kueue's conditions.

Each function is one statement that can be repeated: a worker that was away finds all admissions since then. Intervals
of one run never overlap: one that is still open when the next begins ends there.
"""

from __future__ import annotations

from django.db import connection

from catalog.models import GpuClass
from cluster.manifests.run_spec import BATCH, INTERACTIVE, NOTEBOOK
from cluster.mirror.admissions import UNSEEN
from cluster.models import AdmissionPeriod, AppliedObject, MirrorKind
from tenants.models import Namespace
from workloads.allocations.models import AllocationInterval
from workloads.core.unit_sql import TOTAL_UNITS
from workloads.models import Run, Workload

Source = AllocationInterval.Source
# The watcher may see the end of a Workload after the worker has seen that of its Job. Ends that are older stay.
CORRECTED_FOR_S = 86_400


def record_admissions(run_id: int) -> None:
    """Every admission of the run's Job that the watcher has recorded."""
    with connection.cursor() as cursor:
        cursor.execute(_RECORD, [run_id])


def record_start(run_id: int) -> None:
    """For a cluster without a queue: units are held from the start of the run."""
    with connection.cursor() as cursor:
        cursor.execute(_START, [run_id])


def record_end(run_id: int) -> None:
    """Closes what is open when the run has ended. `correct_ends` replaces this by the time of Kueue's condition."""
    with connection.cursor() as cursor:
        cursor.execute(_END, [run_id])


def end_what_was_in_cluster(cluster_id: int) -> None:
    """Another cluster takes the place of this one: what is known without a queue was held until the watcher last heard
    of pods. What is known from the queue ends with its admissions.
    """
    with connection.cursor() as cursor:
        cursor.execute(_END_ALL, [cluster_id])


def correct_ends() -> int:
    """Ends that were recorded before Kueue's condition was seen. Returns how many changed."""
    with connection.cursor() as cursor:
        cursor.execute(_CORRECT, [CORRECTED_FOR_S])
        return int(cursor.rowcount)


_TABLE = AllocationInterval._meta.db_table
_RUN_ROWS = f"""
  FROM {Run._meta.db_table} run
  JOIN {Workload._meta.db_table} workload ON workload.id = run.workload_id
  JOIN {Namespace._meta.db_table} namespace ON namespace.id = workload.namespace_id
  JOIN {GpuClass._meta.db_table} class
    ON class.cluster_id = namespace.cluster_id AND class.slug = run.spec ->> 'gpu_class'"""
_COLUMNS = (
    "run_id, pod_uid, namespace_id, gpu_class_id, units, weight, price_per_unit_hour, priority, "
    "flavor, source, queued_uid, starts_at, ends_at, end_reason, is_exact"
)
_FROZEN = f"""run.id, '', workload.namespace_id, class.id, {TOTAL_UNITS}, (run.spec ->> 'weight')::numeric,
       (run.spec ->> 'price_per_unit_hour')::numeric,
       coalesce(nullif(run.priority, ''), nullif(run.spec ->> 'priority', ''),
                CASE run.spec ->> 'kind' WHEN '{NOTEBOOK}' THEN '{INTERACTIVE}' ELSE '{BATCH}' END)"""
# Kueue assigns flavors to cpu and memory too, unless it leaves them out.
_FLAVOR = """coalesce(
           (SELECT min(flavor.value) FROM jsonb_each_text(period.flavors) flavor WHERE position('/' IN flavor.key) > 0),
           period.flavors ->> 'cpu', '')"""
# In the order of their starts: an interval has to end before the next one begins.
_RECORD = f"""
INSERT INTO {_TABLE} AS known ({_COLUMNS})
SELECT {_FROZEN},
       {_FLAVOR}, '{Source.QUEUE}', period.uid, period.admitted_at,
       least(period.ended_at, lead(period.admitted_at) OVER following), period.reason,
       period.is_exact AND (lead(period.admitted_at) OVER following IS NULL
                            OR coalesce(period.ended_at <= lead(period.admitted_at) OVER following, false))
{_RUN_ROWS}
  JOIN {AppliedObject._meta.db_table} job
    ON job.cluster_id = namespace.cluster_id AND job.kind = 'Job' AND job.namespace = namespace.name
   AND job.name = workload.name || '-' || run.number AND job.uid <> ''
  CROSS JOIN LATERAL (
       SELECT DISTINCT ON (admitted_at) * FROM {AdmissionPeriod._meta.db_table}
        WHERE cluster_id = namespace.cluster_id AND job_uid = job.uid
        ORDER BY admitted_at, ended_at DESC NULLS FIRST) period
 WHERE run.id = %s
WINDOW following AS (ORDER BY period.admitted_at)
 ORDER BY period.admitted_at
    ON CONFLICT (run_id, starts_at) DO UPDATE
   SET ends_at = excluded.ends_at, end_reason = excluded.end_reason, is_exact = excluded.is_exact
 WHERE known.source = '{Source.QUEUE}' AND excluded.ends_at IS NOT NULL
   AND known.ends_at IS DISTINCT FROM excluded.ends_at"""
_START = f"""
INSERT INTO {_TABLE} ({_COLUMNS})
SELECT {_FROZEN},
       '', '{Source.START}', '', run.started_at, NULL, '', true
{_RUN_ROWS}
 WHERE run.id = %s AND run.started_at IS NOT NULL
    ON CONFLICT DO NOTHING"""
_END = f"""
UPDATE {_TABLE} known
   SET ends_at = greatest(run.ended_at, known.starts_at), end_reason = run.outcome,
       is_exact = known.source = '{Source.START}'
  FROM {Run._meta.db_table} run
 WHERE run.id = known.run_id AND run.id = %s AND known.ends_at IS NULL AND run.ended_at IS NOT NULL"""
_END_ALL = f"""
UPDATE {_TABLE} known SET ends_at = greatest(kind.heard_at, known.starts_at), end_reason = '{UNSEEN}', is_exact = false
  FROM {Namespace._meta.db_table} namespace
  JOIN {MirrorKind._meta.db_table} kind ON kind.cluster_id = namespace.cluster_id AND kind.kind = 'Pod'
 WHERE namespace.id = known.namespace_id AND namespace.cluster_id = %s
   AND known.source <> '{Source.QUEUE}' AND known.ends_at IS NULL"""
_CORRECT = f"""
UPDATE {_TABLE} known
   SET ends_at = least(period.ended_at, (
           SELECT min(later.starts_at) FROM {_TABLE} later
            WHERE later.run_id = known.run_id AND later.starts_at > known.starts_at)),
       end_reason = period.reason, is_exact = period.is_exact
  FROM {AdmissionPeriod._meta.db_table} period
 WHERE NOT known.is_exact AND known.ends_at > now() - %s * interval '1 second' AND known.source = '{Source.QUEUE}'
   AND period.uid = known.queued_uid AND period.admitted_at = known.starts_at AND period.is_exact
   AND period.ended_at IS NOT NULL"""
