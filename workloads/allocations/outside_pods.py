"""Intervals of pods in a team's namespace that belong to no run, from the mirror.

Only while the mirror is current: from one that is not, nothing ends. Such a pod is seen within a minute, so its end is
known to the minute. Pods that more than one class could be charged for, or none, are left out.
"""

from __future__ import annotations

from django.db import connection, transaction

from catalog.models import GpuClass
from cluster.models import Cluster, MirrorNode, MirrorPod
from cluster.reads import queries as mirror
from portal.core.due import table_label
from tenants.models import Namespace
from workloads.allocations.models import AllocationInterval
from workloads.models import Workload


@transaction.atomic
def record_outside_pods(cluster: Cluster) -> bool:
    """Returns False if the mirror is not current. Three queries."""
    if not mirror.as_of(cluster.pk, "Pod", "Node").is_current:
        return False
    with connection.cursor() as cursor:
        cursor.execute(_BEGIN, [cluster.pk])
        cursor.execute(_END, [cluster.pk, cluster.pk])
    return True


_SOURCE = AllocationInterval.Source.PODS
_OVER = "('Succeeded', 'Failed')"
# A label alone proves nothing: any user can set it. Pods of runs are made by Jobs.
_BEGIN = f"""
INSERT INTO {AllocationInterval._meta.db_table} (
       run_id, pod_uid, namespace_id, gpu_class_id, units, weight, price_per_unit_hour, priority, flavor, source,
       queued_uid, starts_at, ends_at, end_reason, is_exact)
SELECT NULL, pod.uid, namespace.id, min(class.id), min((pod.record -> 'requests' ->> class.resource)::bigint),
       min(class.weight), min(class.price_per_unit_hour), '', '', '{_SOURCE}', '', pod.created_at, NULL, '', false
  FROM {MirrorPod._meta.db_table} pod
  JOIN {Namespace._meta.db_table} namespace
    ON namespace.cluster_id = pod.cluster_id AND namespace.name = pod.namespace AND namespace.gone_at IS NULL
  JOIN {MirrorNode._meta.db_table} node ON node.cluster_id = pod.cluster_id AND node.name = pod.node
  JOIN {GpuClass._meta.db_table} class
    ON class.cluster_id = pod.cluster_id AND class.interface = '{GpuClass.Interface.DEVICE_PLUGIN}'
   AND pod.record -> 'requests' ? class.resource AND node.record -> 'labels' @> class.node_labels
 WHERE pod.cluster_id = %s AND pod.phase NOT IN {_OVER}
   AND NOT (coalesce(pod.record ->> 'job_uid', '') <> '' AND EXISTS (
       SELECT FROM {Workload._meta.db_table} workload
        WHERE workload.namespace_id = namespace.id AND pod.owner = '{table_label(Workload)}.' || workload.id))
 GROUP BY pod.uid, pod.created_at, namespace.id HAVING count(*) = 1
    ON CONFLICT (pod_uid) WHERE pod_uid <> '' DO NOTHING"""
_END = f"""
UPDATE {AllocationInterval._meta.db_table} held SET ends_at = greatest(now(), held.starts_at), end_reason = 'Deleted'
  FROM {Namespace._meta.db_table} namespace
 WHERE namespace.id = held.namespace_id AND namespace.cluster_id = %s
   AND held.source = '{_SOURCE}' AND held.ends_at IS NULL AND (namespace.gone_at IS NOT NULL OR NOT EXISTS (
       SELECT FROM {MirrorPod._meta.db_table} pod
        WHERE pod.cluster_id = %s AND pod.namespace = namespace.name AND pod.uid = held.pod_uid
          AND pod.phase NOT IN {_OVER}))"""
