"""If several workloads in a queue have the same request, Kueue tries one of them and sets the others aside without a
message. This module gives the others the message of the one that was tried, with its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from django.db import connection

from cluster.models import MirrorJob, MirrorWorkload
from cluster.reads.observed import Condition
from cluster.reads.observed import KueueWorkload as Queued
from tenants.models import Namespace
from workloads.core.workload_sql import of_same_run
from workloads.models import Run, Workload
from workloads.status.explain import queue

# Reasons that follow from the size of the request, and therefore apply to all workloads with the same request.
SHARED_REASONS = frozenset({"waiting_for_quota", "no_node_fits", "gang_fits_in_part", "exceeds_maximum"})


def with_equivalent_messages(cluster_id: int, queued: Mapping[str, Queued]) -> dict[str, Queued]:
    """Returns the workloads by Job uid. A waiting workload without a message gets the message of the first workload of
    its team with the same request that is not behind it: of those of one second, Kueue may have tried any. One query,
    none if all have a message.
    """
    silent = [uid for uid, one in queued.items() if _is_silent(one)]
    if not silent:
        return dict(queued)
    namespaces = sorted({queued[uid].namespace for uid in silent})
    with connection.cursor() as cursor:
        cursor.execute(_SAID, {"cluster": cluster_id, "namespaces": namespaces, "silent": silent})
        found = {uid: (text, name) for uid, name, text in cursor.fetchall()}
    return {uid: _with(one, *found[uid]) if uid in found else one for uid, one in queued.items()}


def _is_silent(one: Queued) -> bool:
    pending = one.condition("QuotaReserved")
    is_over = one.is_true("Finished") or not one.active
    said = "" if pending is None or pending.message == queue.STILL_DEACTIVATED else pending.message
    return not is_over and (pending is None or not (pending.is_true or said))


def _with(one: Queued, message: str, about: str) -> Queued:
    if queue.pending(message, queue.RequestedSize(units=1), class_name="", slug="").reason not in SHARED_REASONS:
        return one
    others = tuple(condition for condition in one.conditions if condition.type != "QuotaReserved")
    before = one.condition("QuotaReserved")
    shared = Condition("QuotaReserved", "False", "Pending", message, before.since if before else None, about)
    return replace(one, conditions=(*others, shared))


# Kueue sets workloads aside only if all of these are the same.
_SAME = "namespace, gpu_class, units, workers, level, is_required"
_SAID = f"""
WITH line AS MATERIALIZED (
    SELECT queued.job_uid, queued.namespace, workload.name, run.spec ->> 'gpu_class' AS gpu_class,
           run.spec ->> 'units' AS units, coalesce(run.spec ->> 'workers', '1') AS workers,
           coalesce(run.spec ->> 'topology_level', '') AS level,
           coalesce(run.spec ->> 'topology_required', '') AS is_required,
           -(queued.record ->> 'priority')::bigint AS lower, queued.created_at, queued.uid COLLATE "C" AS uid,
           coalesce(jsonb_path_query_first(queued.record,
                    '$.conditions[*] ? (@.type == "QuotaReserved").message') #>> '{{}}', '') AS said
      FROM {MirrorWorkload._meta.db_table} queued
      JOIN {MirrorJob._meta.db_table} job ON job.cluster_id = queued.cluster_id AND job.uid = queued.job_uid
      JOIN {Namespace._meta.db_table} namespace
        ON namespace.cluster_id = queued.cluster_id AND namespace.name = queued.namespace
      JOIN {Workload._meta.db_table} workload
        ON workload.namespace_id = namespace.id AND job.owner = 'workloads.workload.' || workload.id
      JOIN {Run._meta.db_table} run
        ON run.workload_id = workload.id AND job.name = workload.name || '-' || run.number AND {of_same_run("job")}
     WHERE queued.cluster_id = %(cluster)s AND queued.namespace = ANY(%(namespaces)s)
       AND (queued.record ->> 'active')::boolean
       AND NOT queued.record -> 'conditions' @> '[{{"type": "QuotaReserved", "status": "True"}}]'
       AND NOT queued.record -> 'conditions' @> '[{{"type": "Finished", "status": "True"}}]'
), first AS (
    SELECT DISTINCT ON ({_SAME}) *
      FROM line
     WHERE said NOT IN ('', '{queue.STILL_DEACTIVATED}')
     ORDER BY {_SAME}, lower, created_at, uid
)
SELECT line.job_uid, first.name, first.said
  FROM line JOIN first USING ({_SAME})
 WHERE line.job_uid = ANY(%(silent)s)
   AND (first.lower, first.created_at) <= (line.lower, line.created_at)"""
