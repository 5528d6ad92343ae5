"""The Kueue Topology of a class: its levels, and the nodes that lack a label of them.

Which node labels make levels is the site's: it creates Topology objects, and a class names one. Levels of a Topology
never change.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from catalog.classes import queries
from catalog.models import GpuClass
from cluster.reads import queries as mirror
from portal.core.errors import Refusal
from portal.ui.text import plural

HOST = "kubernetes.io/hostname"


@dataclass(frozen=True)
class ClassTopology:
    """`levels`: node labels, widest first; none: the cluster has no such Topology; None: the mirror is unknown.

    `nodes`: with the labels of the class; `without_labels`: those that lack a label of a level, and that Kueue ignores.
    None: unknown.
    """

    name: str
    levels: tuple[str, ...] | None = None
    nodes: int | None = None
    without_labels: int | None = None


def topologies_of(classes: Collection[GpuClass]) -> dict[int, ClassTopology]:
    """By class id, without classes whose only level is the host. Three queries if there are others."""
    named = [one for one in classes if one.topology and queries.has_topology(one)]
    if not named:
        return {}
    cluster_id = named[0].cluster_id
    if not mirror.is_known(cluster_id, "Topology", "Node"):
        return {one.pk: ClassTopology(one.topology) for one in named}
    levels = {found.name: tuple(found.record["levels"]) for found in mirror.objects(cluster_id, kind="Topology")}
    labels = [node.labels for node in mirror.nodes(cluster_id)]
    found = {}
    for one in named:
        mine = [node for node in labels if one.node_labels.items() <= node.items()]
        wanted = levels.get(one.topology, ())
        ignored = sum(not set(wanted) <= node.keys() for node in mine)
        found[one.pk] = ClassTopology(one.topology, wanted, len(mine), ignored)
    return found


def levels_of(gpu_class: GpuClass) -> tuple[str, ...] | None:
    """Node labels that a launch on the class may name, widest first; (): none, None: unknown. At most two queries."""
    if not gpu_class.topology or not queries.has_topology(gpu_class):
        return ()
    if not mirror.is_known(gpu_class.cluster_id, "Topology"):
        return None
    found = mirror.objects(gpu_class.cluster_id, kind="Topology")
    return next((tuple(one.record["levels"]) for one in found if one.name == gpu_class.topology), ())


def refusal(gpu_class: GpuClass) -> Refusal | None:
    """Refuses a Topology with which Kueue would admit nothing to a node of the class, or not to one node."""
    found = topologies_of([gpu_class]).get(gpu_class.pk)
    if found is None:
        return None
    if found.levels is None or found.without_labels is None:
        text = "The nodes and topologies of the cluster are unknown now; try again when they are known."
    elif not found.levels:
        text = f"The cluster has no Topology {found.name}; an administrator of the cluster creates it."
    elif found.levels[-1] != HOST:
        text = f"The last level of {found.name} is {found.levels[-1]}; it has to be {HOST}, or pods may fit on no node."
    elif found.without_labels:
        text = f"{_ignored(found)} Add the labels, or choose a Topology without that level."
    else:
        return None
    return Refusal("bad_topology", text, "topology")


def change_refusal(gpu_class: GpuClass, *, flavor: str) -> Refusal | None:
    """`flavor`: of the old Topology. That of the new one would not count the units that runs hold by the old one: Kueue
    would admit others to the same GPUs.
    """
    if not mirror.is_known(gpu_class.cluster_id, "Workload"):
        text = "Which workloads hold units of the class is unknown now; try again when it is known."
        return Refusal("in_use", text, "topology", status=409)
    unfinished = [one for one in mirror.workloads(gpu_class.cluster_id) if not one.is_true("Finished")]
    if held := sum(flavor in one.flavors.values() for one in unfinished):
        text = (
            f"{plural(held, 'workload')} of {gpu_class.name} {'holds' if held == 1 else 'hold'} units by its present "
            "topology. Pause its scheduling, and change the topology when they have ended."
        )
        return Refusal("in_use", text, "topology", status=409)
    return None


def topology_text(found: ClassTopology) -> str:
    if found.levels is None:
        return f"{found.name}; its levels are unknown now"
    if not found.levels:
        return f"{found.name}, which the cluster does not have: nothing starts"
    text = f"{found.name}: {', '.join(found.levels)}"
    return f"{text}. {_ignored(found)}" if found.without_labels else text


def _ignored(found: ClassTopology) -> str:
    lacking = found.without_labels or 0
    lack = "lacks" if lacking == 1 else "lack"
    return f"{lacking} of {plural(found.nodes or 0, 'node')} {lack} a label of a level: Kueue starts nothing there."
