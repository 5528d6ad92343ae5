"""What waits in the queue, summed over all teams."""

from __future__ import annotations

from django.db import connection

from cluster import queries as mirror
from cluster.models import Cluster, MirrorJob, MirrorWorkload
from workloads.models import Run, Workload
from workloads.queries.sizes import TOTAL_UNITS


def waiting_units(cluster: Cluster) -> dict[str, int] | None:
    """Class slug → units of runs whose Kueue Workload has no quota yet. None: nobody knows. Two queries.

    Without Kueue nothing queues.
    """
    if cluster.queue_system != Cluster.QueueSystem.KUEUE:
        return {}
    if not mirror.is_known(cluster.pk, "Workload", "Job"):
        return None
    with connection.cursor() as cursor:
        cursor.execute(_WAITING, [cluster.pk])
        return {slug: int(units) for slug, units in cursor.fetchall()}


# A workload has one run that has not ended; Kueue's Workload has no owner label, its Job does.
_WAITING = f"""
SELECT run.spec ->> 'gpu_class', sum({TOTAL_UNITS})
  FROM {MirrorWorkload._meta.db_table} queued
  JOIN {MirrorJob._meta.db_table} job ON job.cluster_id = queued.cluster_id AND job.uid = queued.job_uid
  JOIN {Workload._meta.db_table} workload ON job.owner = 'workloads.workload.' || workload.id
  JOIN {Run._meta.db_table} run ON run.workload_id = workload.id AND run.ended_at IS NULL
 WHERE queued.cluster_id = %s AND (queued.record ->> 'active')::boolean
   AND NOT queued.record -> 'conditions' @> '[{{"type": "QuotaReserved", "status": "True"}}]'
   AND NOT queued.record -> 'conditions' @> '[{{"type": "Finished", "status": "True"}}]'
 GROUP BY 1"""
