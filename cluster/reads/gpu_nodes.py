"""Nodes that have GPUs, though none of the labels by which GPU nodes are known says so."""

from __future__ import annotations

from collections.abc import Collection

from django.db import connection

from cluster.models import MirrorNode, MirrorUnits

# GPUs by the names of device plugins; "" are devices of ResourceSlices.
_GPU = r"^((nvidia\.com|amd\.com|gpu\.intel\.com|habana\.ai)/.*)?$"


def unlabelled_gpu_nodes(cluster_id: int, labels: Collection[str]) -> list[str]:
    """Returns host names, sorted. A plugin that stopped leaves its resource with 0 units: the node still has GPUs. One
    query.
    """
    with connection.cursor() as cursor:
        cursor.execute(_UNLABELLED, [cluster_id, _GPU, list(labels)])
        return [host for (host,) in cursor.fetchall()]


_UNLABELLED = f"""
SELECT DISTINCT coalesce(node.record -> 'labels' ->> 'kubernetes.io/hostname', node.name)
  FROM {MirrorNode._meta.db_table} node JOIN {MirrorUnits._meta.db_table} units
       ON units.cluster_id = node.cluster_id AND units.node = node.name
 WHERE node.cluster_id = %s AND units.resource ~ %s AND NOT (node.record -> 'labels' ?| %s::text[])
 ORDER BY 1"""
