"""Positions in a team's queue. Read with SQL text for speed: a queue is long at the time when many pages read it, and
its rows are JSON.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from functools import lru_cache

from django.db import connection

from cluster.models import MirrorJob, MirrorWorkload
from cluster.reads.observed import KueueWorkload as Queued
from workloads.status.explain import queue


def queue_positions(cluster_id: int, namespace: str) -> dict[str, int]:
    """Returns by Job uid the position among the team's queued workloads of the same class, 0 first, in Kueue's order:
    priority, creation time (whole seconds), uid. A workload that can never be admitted has no position and delays no
    other. One query.
    """
    found: dict[str, int] = {}
    lengths: Counter[str] = Counter()
    with connection.cursor() as cursor:
        cursor.execute(_LINE, [cluster_id, namespace])
        for uid, gpu_class, pending in cursor.fetchall():
            if is_hopeless(pending):
                continue
            found[uid] = lengths[gpu_class]
            lengths[gpu_class] += 1
    return found


def queue_order(waits: Queued) -> tuple[int, datetime, str]:
    """Returns the sort key of `queue_positions`, for workloads without a position."""
    return -waits.priority, waits.created_at, waits.uid


@lru_cache(maxsize=4096)
def is_hopeless(pending: str) -> bool:
    """`pending`: Kueue's message about the wait, which is the same for all workloads with the same wait."""
    return queue.pending(pending, queue.RequestedSize(units=1), class_name="", slug="").is_final


_LINE = f"""
SELECT queued.job_uid, coalesce(job.record #>> '{{labels,gpu-portal/class}}', ''),
       coalesce(jsonb_path_query_first(queued.record,
                '$.conditions[*] ? (@.type == "QuotaReserved").message') #>> '{{}}', '')
  FROM {MirrorWorkload._meta.db_table} queued
  JOIN {MirrorJob._meta.db_table} job
    ON job.cluster_id = queued.cluster_id AND job.namespace = queued.namespace AND job.uid = queued.job_uid
 WHERE queued.cluster_id = %s AND queued.namespace = %s AND (queued.record ->> 'active')::boolean
   AND NOT queued.record -> 'conditions' @> '[{{"type": "QuotaReserved", "status": "True"}}]'
   AND NOT queued.record -> 'conditions' @> '[{{"type": "Finished", "status": "True"}}]'
 ORDER BY (queued.record ->> 'priority')::bigint DESC, queued.created_at, queued.uid COLLATE "C"
"""
