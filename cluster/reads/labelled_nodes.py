"""Nodes by their labels."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

from django.db import connection

from cluster.models import MirrorNode


def labels_by_node(
    cluster_id: int, selectors: Collection[Mapping[str, str]], keys: Collection[str]
) -> dict[str, dict[str, str]]:
    """Returns by name the nodes that have all labels of one of the selectors, with their labels of these keys. One
    query.
    """
    with connection.cursor() as cursor:
        cursor.execute(_NODES, [list(keys), cluster_id, [json.dumps(dict(one)) for one in selectors]])
        return {name: labels or {} for name, labels in cursor.fetchall()}


_NODES = f"""
SELECT node.name, (SELECT json_object_agg(key, value) FROM jsonb_each_text(node.record -> 'labels')
                    WHERE key = ANY(%s::text[]))
  FROM {MirrorNode._meta.db_table} node
 WHERE node.cluster_id = %s AND node.record -> 'labels' @> ANY(%s::jsonb[])
 ORDER BY node.name"""
