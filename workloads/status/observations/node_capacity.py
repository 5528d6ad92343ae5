"""The nodes of a run's class as the mirror shows them, with the units, cores and memory in use on them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.db import connection

from catalog.models import GpuClass
from cluster.manifests.node_removal.cordons import cordon_of
from cluster.models import MirrorNode, MirrorPod
from cluster.reads.taints import is_tolerated
from cluster.reads.units import REPELLING_EFFECTS, STATE_TAINT
from workloads.core.class_nodes import ClassNode, ClassNodes
from workloads.core.observation import Observation
from workloads.models import Run
from workloads.status.explain import nodes as explain_nodes
from workloads.status.explain.quantities import GIB

PLUGIN = "device-plugin"


@dataclass(frozen=True)
class PodDemand:
    """What each pod of a run requests from a node."""

    labels: Mapping[str, str]
    tolerations: tuple[Mapping[str, str], ...]
    resource: str
    units: int
    cpu: int
    memory_gib: int
    # Of the run's topology, widest first; "": all its pods need not be in one domain of a level.
    levels: tuple[str, ...] = ()
    level: str = ""

    @classmethod
    def of(cls, run: Run) -> PodDemand | None:
        """Returns None if no node advertises the units: for claimed slices, and for runs without a GPU."""
        spec = run.spec
        if spec.get("interface") != PLUGIN or not spec["node_labels"]:
            return None
        tolerations = tuple(spec["tolerations"])
        return cls(
            spec["node_labels"],
            tolerations,
            spec["resource"],
            spec["units"],
            spec["cpu"],
            spec["memory_gib"],
            tuple(spec.get("topology_levels", ())),
            spec["topology_level"] if spec.get("topology_required") else "",
        )

    @classmethod
    def of_class(cls, one: GpuClass) -> PodDemand | None:
        """Returns what one unit of the class requests; None as with `of`."""
        if one.interface != PLUGIN or not one.node_labels:
            return None
        tolerations = tuple(one.tolerations)
        return cls(one.node_labels, tolerations, one.resource, 1, one.cpu_per_unit, one.memory_gib_per_unit)


def requiring_level(runs: Iterable[Run]) -> dict[int, PodDemand]:
    """The runs that require a level of a topology, by run id. One worker is always in one domain."""
    places = {run.pk: PodDemand.of(run) for run in runs if run.workers > 1}
    return {pk: place for pk, place in places.items() if place is not None and place.level}


def nodes_of(cluster_id: int, places: Mapping[int, PodDemand]) -> dict[int, ClassNodes]:
    """Returns the nodes by the key of each place. One query; none without places."""
    if not places:
        return {}
    labels = [json.dumps(dict(place.labels)) for place in places.values()]
    resources = [place.resource for place in places.values()]
    levels = [json.dumps(place.levels) for place in places.values()]
    with connection.cursor() as cursor:
        cursor.execute(_NODES, [list(places), labels, resources, levels, cluster_id, cluster_id])
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    found: dict[int, list[ClassNode]] = {pk: [] for pk in places}
    for pk, *row in rows:
        found[pk].append(_node(places[pk], *row))
    return {
        pk: ClassNodes(
            tuple(found[pk]),
            place.units,
            place.cpu,
            place.memory_gib,
            place.resource,
            levels=place.levels,
            level=place.level,
        )
        for pk, place in places.items()
    }


def with_nodes(cluster_id: int, seen: Mapping[int, Observation], runs: Mapping[int, Run]) -> dict[int, Observation]:
    """Returns the observations, with nodes for those that wait for one. One query if a run waits for a node."""
    waiting = {pk: runs[pk] for pk, one in seen.items() if pk in runs and _waits_for_node(one)}
    places = {pk: place for pk, run in waiting.items() if (place := PodDemand.of(run)) is not None}
    nodes = nodes_of(cluster_id, places)
    return {pk: replace(one, nodes=nodes[pk]) if pk in nodes else one for pk, one in seen.items()}


# The use by pods is summed once per node, however many runs request it.
_NODES = f"""
WITH fitting AS (
    SELECT wanted.pk, wanted.resource, wanted.levels, node.name, node.ready, node.schedulable, node.record
      FROM unnest(%s::bigint[], %s::jsonb[], %s::text[], %s::jsonb[]) AS wanted(pk, labels, resource, levels)
      JOIN {MirrorNode._meta.db_table} node ON node.record -> 'labels' @> wanted.labels
     WHERE node.cluster_id = %s
), held AS (
    SELECT pod.node, asked.key AS resource, sum(asked.value::bigint) AS used,
           sum(asked.value::bigint) FILTER (WHERE pod.deleting_since IS NOT NULL) AS ending
      FROM {MirrorPod._meta.db_table} pod, jsonb_each_text(pod.record -> 'requests') asked
     WHERE pod.cluster_id = %s AND pod.phase NOT IN ('Succeeded', 'Failed')
       AND pod.node IN (SELECT name FROM fitting)
     GROUP BY pod.node, asked.key
)
SELECT fitting.pk, fitting.name, fitting.ready, fitting.schedulable, (fitting.record -> 'taints')::text,
       (fitting.record -> 'cordon')::text,
       ARRAY(SELECT fitting.record -> 'labels' ->> level.label
               FROM jsonb_array_elements_text(fitting.levels) WITH ORDINALITY AS level(label, place)
              ORDER BY level.place),
       coalesce((fitting.record -> 'capacity' ->> fitting.resource)::bigint, 0),
       coalesce((fitting.record -> 'allocatable' ->> fitting.resource)::bigint, 0),
       coalesce(units.used, 0), coalesce(units.ending, 0),
       coalesce((fitting.record -> 'allocatable' ->> 'cpu')::bigint, 0) - coalesce(cpu.used, 0),
       coalesce((fitting.record -> 'allocatable' ->> 'memory')::bigint, 0) - coalesce(memory.used, 0)
  FROM fitting
  LEFT JOIN held units ON units.node = fitting.name AND units.resource = fitting.resource
  LEFT JOIN held cpu ON cpu.node = fitting.name AND cpu.resource = 'cpu'
  LEFT JOIN held memory ON memory.node = fitting.name AND memory.resource = 'memory'
 ORDER BY fitting.pk, fitting.name"""


def _node(place: PodDemand, name: str, ready: bool, schedulable: bool, *values: Any) -> ClassNode:
    taints, cordon = (json.loads(text or "null") for text in values[:2])
    domains: list[str | None] = values[2]
    capacity, allocatable, used, ending, cpu, memory = map(int, values[3:])
    keeps = [
        taint
        for taint in taints
        if taint["effect"] in REPELLING_EFFECTS
        and not taint["key"].startswith(STATE_TAINT)
        and not is_tolerated(taint, place.tolerations)
    ]
    return ClassNode(
        name,
        ready,
        schedulable,
        bool(keeps),
        capacity,
        allocatable,
        used,
        ending,
        cpu / 1000,
        round(memory / GIB, 2),
        _taint_text(keeps[0]) if keeps else "",
        cordon_of(schedulable=schedulable, record={"taints": taints, "cordon": cordon}),
        tuple(domains),
    )


def _taint_text(taint: Mapping[str, str]) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint['effect']}"


def _waits_for_node(seen: Observation) -> bool:
    pod = seen.pod
    if pod is not None and pod.deleting_since is None:
        placed = pod.condition("PodScheduled")
        return not pod.node and placed is not None and placed.reason == "Unschedulable"
    pending = seen.queue.condition("QuotaReserved") if seen.queue is not None else None
    return pending is not None and not pending.is_true and explain_nodes.is_about_nodes(pending.message)
