"""Units of resources over all nodes, summed by PostgreSQL: the number of rows depends on the kinds of hardware.

Read from `MirrorUnits` and `MirrorUse`, which are counted per node whenever a row of the mirror changes.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import connection

from cluster.models import MirrorNode, MirrorUnits, MirrorUse

HOST_LABEL = "kubernetes.io/hostname"
# The `resource` of devices that ResourceSlices list.
SLICES = ""
CPU = "cpu"
# Taints that Kubernetes sets on a node that is cordoned or not ready: they do not reserve it for certain workloads.
STATE_TAINT = "node.kubernetes.io/"
REPELLING_EFFECTS = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class NodeShape:
    """What equal nodes have in common. `labels`: those that were requested; `taints`: those that reserve the nodes for
    certain pods; `resources`: names of what they offer.
    """

    labels: Mapping[str, str]
    taints: tuple[Mapping[str, str], ...]
    resources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ResourceUnits:
    """One resource on nodes of one shape, in units of `size`; what a node has is rounded before it is summed.

    `device`: driver, distinguishing attributes and memory of devices from slices. `node`: one of them, or the only one.
    """

    # Units of equal keys are the same units, in every query.
    key: tuple[object, ...]
    shape: NodeShape
    resource: str
    size: int
    device: Mapping[str, str]
    node: str
    ready: bool
    schedulable: bool
    capacity: int
    allocatable: int
    used: int
    free: int
    most_free: int
    largest: int
    # How many nodes have any to offer.
    nodes: int


def resource_units(
    cluster_id: int, asked: Collection[tuple[str, int]], *, labels: Collection[str], by_node: bool = False
) -> list[ResourceUnits]:
    """Of the resources `asked` as (name, size of a unit), by node name. `labels` to read. One query."""
    resources, sizes = zip(*sorted(asked), strict=True) if asked else ((), ())
    # Host names are not part of the shape: a selector with a host name selects single nodes.
    by_node = by_node or HOST_LABEL in labels
    values: list[Any] = [by_node, list(resources), list(sizes), cluster_id, list(labels), cluster_id]
    with connection.cursor() as cursor:
        cursor.execute(_UNITS, values)
        return [_units(*row) for row in cursor.fetchall()]


_UNITS = f"""
WITH found AS (
    SELECT shape, resource, size, device, ready, schedulable, min(node) AS node,
           CASE WHEN %s THEN node END AS of_node,
           sum(capacity / size) AS capacity, sum(allocatable / size) AS allocatable,
           sum((used + size - 1) / size) AS used,
           sum(greatest(0, allocatable / size - (used + size - 1) / size)) AS free,
           max(greatest(0, allocatable / size - (used + size - 1) / size)) AS most_free,
           max(allocatable / size) AS largest, count(*) FILTER (WHERE allocatable >= size) AS nodes
      FROM {MirrorUnits._meta.db_table} JOIN unnest(%s::text[], %s::bigint[]) asked (resource, size) USING (resource)
     WHERE cluster_id = %s
     GROUP BY shape, resource, size, device, ready, schedulable, of_node
)
SELECT found.shape, found.of_node, found.resource, found.size, found.device::text,
       found.node, found.ready, found.schedulable,
       found.capacity, found.allocatable, found.used, found.free, found.most_free, found.largest,
       found.nodes,
       (SELECT jsonb_object_agg(label, node.record -> 'labels' -> label) FROM unnest(%s::text[]) label
         WHERE node.record -> 'labels' -> label IS NOT NULL)::text,
       (node.record -> 'taints')::text, ARRAY(SELECT jsonb_object_keys(node.record -> 'allocatable'))
  FROM found CROSS JOIN LATERAL (
           -- One look-up a group: joined as a table, all nodes would be read for a few of them.
           SELECT record FROM {MirrorNode._meta.db_table} WHERE cluster_id = %s AND name = found.node LIMIT 1
       ) node
 ORDER BY found.node, found.resource, found.size, found.device"""


def _units(shape: object, of_node: object, resource: str, size: int, device: str, *rest: Any) -> ResourceUnits:
    node, ready, schedulable, *figures, labels, taints, resources = rest
    return ResourceUnits(
        (shape, of_node, resource, size, device, ready, schedulable),
        NodeShape(
            labels=json.loads(labels or "{}"),
            taints=tuple(
                taint
                for taint in json.loads(taints)
                if taint["effect"] in REPELLING_EFFECTS and not taint["key"].startswith(STATE_TAINT)
            ),
            resources=tuple(resources),
        ),
        resource,
        size,
        json.loads(device),
        node,
        ready,
        schedulable,
        *map(int, figures),
    )


def used_by_namespace(
    cluster_id: int, asked: Collection[tuple[str, str, int]], *, namespaces: Collection[str] | None = None
) -> dict[tuple[str, str], int]:
    """(namespace, class slug) → units of our pods that are bound to a node and not over. One query.

    `asked`: (slug, resource, size of a unit); each pod's part is rounded up. Devices of slices by the pods' claims.
    `namespaces`: only these.
    """
    slugs, resources, sizes = zip(*sorted(asked), strict=True) if asked else ((), (), ())
    of_namespaces = None if namespaces is None else list(namespaces)
    values: list[Any] = [list(slugs), list(resources), list(sizes), cluster_id, of_namespaces, of_namespaces]
    with connection.cursor() as cursor:
        cursor.execute(_USED, values)
        return {(namespace, slug): int(used) for namespace, slug, used in cursor.fetchall()}


_USED = f"""
SELECT use.namespace, asked.slug, sum(use.pods * ((use.amount + asked.size - 1) / asked.size))
  FROM {MirrorUse._meta.db_table} use
  JOIN unnest(%s::text[], %s::text[], %s::bigint[]) asked (slug, resource, size)
    ON asked.slug = use.gpu_class AND asked.resource = use.resource
 WHERE use.cluster_id = %s AND (%s::text[] IS NULL OR use.namespace = ANY(%s))
 GROUP BY use.namespace, asked.slug"""
