"""A few nodes of each class, for drawings: PostgreSQL selects the most relevant ones for a team."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import connection

from cluster.models import MirrorUnits, MirrorUse
from cluster.reads.units import ResourceUnits


@dataclass(frozen=True, slots=True)
class TopNode:
    """Units of one class on one node that is ready and schedulable. `mine`: of the team, of those that are used."""

    name: str
    allocatable: int
    used: int
    mine: int = 0


@dataclass(frozen=True, slots=True)
class TopNodes:
    """`nodes` by name, `total` of all that have units of the class."""

    nodes: tuple[TopNode, ...] = ()
    total: int = 0


def top_nodes(
    cluster_id: int, parts: Mapping[str, Collection[ResourceUnits]], *, namespace: str, most: int
) -> dict[str, TopNodes]:
    """At most `most` nodes by class slug: those with pods of `namespace` first, then those with the most left.

    `parts`: the units of each class, as `units` found them. One query, at the cost of what is picked and of the nodes
    that the team is on; of all nodes only for classes whose units had to be found node by node.
    """
    usable = {slug: [one for one in units if one.ready and one.schedulable] for slug, units in parts.items()}
    asked = {(slug, *_place(one)) for slug, units in usable.items() for one in units}
    columns = [list(column) for column in zip(*sorted(asked, key=str), strict=True)] or [[]] * 6
    values: dict[str, Any] = {
        **dict(zip(_ASKED, columns, strict=True)),
        "cluster": cluster_id,
        "namespace": namespace,
        "most": most,
    }
    nodes: dict[str, list[TopNode]] = {slug: [] for slug in usable}
    with connection.cursor() as cursor:
        cursor.execute(_FIRST, values)
        for slug, *of_node in cursor.fetchall():
            nodes[slug].append(TopNode(*of_node))
    return {slug: TopNodes(tuple(nodes[slug]), _total(units)) for slug, units in usable.items()}


def _place(one: ResourceUnits) -> tuple[object, ...]:
    shape, node, resource, size, device, *_ = one.key
    return str(shape), node, resource, size, device


def _total(units: Collection[ResourceUnits]) -> int:
    """Counts a node with devices of several kinds once."""
    return sum({one.node: one.nodes for one in sorted(units, key=lambda one: one.nodes)}.values())


_ASKED = ("slugs", "shapes", "nodes", "resources", "sizes", "devices")
_FIRST = f"""
WITH asked AS MATERIALIZED (
    SELECT * FROM unnest(%(slugs)s::text[], %(shapes)s::uuid[], %(nodes)s::text[], %(resources)s::text[],
                         %(sizes)s::bigint[], %(devices)s::jsonb[]) asked (slug, shape, node, resource, size, device)
), own AS MATERIALIZED (
    SELECT asked.slug, use.node, sum(use.pods * ((use.amount + asked.size - 1) / asked.size)) AS mine
      FROM (SELECT DISTINCT slug, resource, size FROM asked) asked JOIN {MirrorUse._meta.db_table} use
        ON use.cluster_id = %(cluster)s AND use.namespace = %(namespace)s
       AND use.gpu_class = asked.slug AND use.resource = asked.resource
     GROUP BY asked.slug, use.node
), picked AS (
    SELECT slug, node FROM asked WHERE node IS NOT NULL
    UNION SELECT own.slug, own.node FROM own JOIN asked USING (slug) WHERE asked.node IS NULL
    UNION SELECT asked.slug, freest.node FROM asked CROSS JOIN LATERAL (
              SELECT node FROM {MirrorUnits._meta.db_table} units
               WHERE cluster_id = %(cluster)s AND shape = asked.shape AND resource = asked.resource
                 AND device = asked.device AND ready AND schedulable AND allocatable >= asked.size
               ORDER BY allocatable - used DESC, node LIMIT %(most)s
          ) freest WHERE asked.node IS NULL
), found AS (
    SELECT slug, units.node, sum(units.allocatable / asked.size)::int AS allocatable,
           sum((units.used + asked.size - 1) / asked.size)::int AS used,
           sum(units.allocatable - units.used) AS remaining
      FROM picked JOIN (SELECT DISTINCT slug, shape, resource, size, device FROM asked) asked USING (slug)
      JOIN {MirrorUnits._meta.db_table} units
        ON units.cluster_id = %(cluster)s AND units.node = picked.node AND units.shape = asked.shape
       AND units.resource = asked.resource AND units.device = asked.device AND units.ready AND units.schedulable
     GROUP BY slug, units.node
    HAVING sum(units.allocatable / asked.size) > 0
), placed AS (
    SELECT slug, node, allocatable, used, coalesce(mine, 0)::int AS mine,
           row_number() OVER (PARTITION BY slug ORDER BY mine IS NULL, remaining DESC, node) AS place
      FROM found LEFT JOIN own USING (slug, node)
)
SELECT slug, node, allocatable, used, mine FROM placed WHERE place <= %(most)s ORDER BY slug, node"""
