"""A few nodes of each class, for drawings: the ones that matter most to a team, picked by PostgreSQL among all."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from django.db import connection

from cluster.models import MirrorUnits
from cluster.units import Units


@dataclass(frozen=True, slots=True)
class FirstNode:
    """Units of one class on one node that is ready and schedulable."""

    name: str
    allocatable: int
    used: int

    @property
    def free(self) -> int:
        return max(0, self.allocatable - self.used)


@dataclass(frozen=True, slots=True)
class FirstNodes:
    """`nodes` by name, `total` of all that have units of the class."""

    nodes: tuple[FirstNode, ...] = ()
    total: int = 0


def first_nodes(
    cluster_id: int, parts: Mapping[int, Iterable[Units]], own: Mapping[int, Collection[str]], *, most: int
) -> dict[int, FirstNodes]:
    """At most `most` nodes by class id: those of `own` first, then the freest. `parts`: the units of each class, as
    `units` found them. One query; it adds up ints, since PostgreSQL is slow at sums of bigint.
    """
    asked = {(pk, *_place(one)) for pk, units in parts.items() for one in units if one.ready and one.schedulable}
    theirs = [(pk, node) for pk, nodes in own.items() for node in nodes]
    columns = [list(column) for column in zip(*sorted(asked, key=str), strict=True)] or [[]] * 6
    names = [list(column) for column in zip(*theirs, strict=True)] or [[], []]
    found: dict[int, FirstNodes] = {}
    with connection.cursor() as cursor:
        cursor.execute(_FIRST, [*columns, cluster_id, *names, most])
        for pk, node, allocatable, used, total in cursor.fetchall():
            before = found.get(pk, FirstNodes())
            found[pk] = FirstNodes((*before.nodes, FirstNode(node, allocatable, used)), total)
    return found


def _place(one: Units) -> tuple[object, ...]:
    shape, node, resource, size, device, *_ = one.key
    return str(shape), node, resource, size, device


_FIRST = f"""
WITH found AS (
    SELECT asked.class, units.node, sum((units.allocatable / asked.size)::int) AS allocatable,
           sum(((units.used + asked.size - 1) / asked.size)::int) AS used
      FROM {MirrorUnits._meta.db_table} units
      JOIN unnest(%s::bigint[], %s::uuid[], %s::text[], %s::text[], %s::bigint[], %s::jsonb[])
           asked (class, shape, node, resource, size, device)
        ON units.shape = asked.shape AND units.resource = asked.resource AND units.device = asked.device
       AND (asked.node IS NULL OR asked.node = units.node)
     WHERE units.cluster_id = %s AND units.ready AND units.schedulable
     GROUP BY asked.class, units.node
    HAVING sum((units.allocatable / asked.size)::int) > 0
), placed AS (
    SELECT found.*, count(*) OVER (PARTITION BY class) AS total,
           row_number() OVER (
               PARTITION BY class
                   ORDER BY (class, node) IN (SELECT * FROM unnest(%s::bigint[], %s::text[])) DESC,
                            allocatable - used DESC, node
           ) AS place
      FROM found
)
SELECT class, node, allocatable, used, total FROM placed WHERE place <= %s ORDER BY class, node"""
