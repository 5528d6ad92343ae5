"""The maintenances that a run is affected by, with what was chosen for it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from cluster.manifests import names
from cluster.manifests.metadata import names_other_row
from cluster.models import MirrorPod
from cluster.reads import queries as mirror
from operations.maintenance.choices.outcome import AtDrain, at_drain
from operations.maintenance.steps import DRAINED, Step
from operations.models import Maintenance, MaintenanceNode
from portal.core.due import owner_label
from workloads.models import Run, Workload

_OVER = ("Succeeded", "Failed")


@dataclass(frozen=True)
class RunMaintenance:
    """A maintenance that is neither canceled nor over, and has not released the `nodes` of the run. `drained`: those
    of the nodes whose drain has begun.
    """

    row: Maintenance
    nodes: tuple[str, ...]
    drained: tuple[str, ...]
    at_drain: AtDrain


def maintenances_of(workload: Workload, run: Run | None) -> list[RunMaintenance]:
    """By start. `workload` with its namespace. Two queries; one if it is on no node."""
    if run is None or run.ended_at is not None:
        return []
    found: dict[int, list[MaintenanceNode]] = {}
    for node in _open_nodes(workload.namespace.cluster_id, _nodes_of(workload, run)):
        found.setdefault(node.maintenance_id, []).append(node)
    made = [
        RunMaintenance(
            nodes[0].maintenance,
            tuple(node.name for node in nodes),
            tuple(node.name for node in nodes if node.step in DRAINED),
            at_drain(nodes[0].maintenance, run),
        )
        for nodes in found.values()
    ]
    return sorted(made, key=lambda one: (one.row.starts_at, one.row.pk))


def _nodes_of(workload: Workload, run: Run) -> set[str]:
    """Where its pods are, as operations.maintenance.affected finds them."""
    its = {"owner": owner_label(workload), "run": names.run_name(workload.name, run.number)}
    pods = MirrorPod.objects.filter(cluster_id=workload.namespace.cluster_id, **its)
    there = pods.exclude(phase__in=_OVER).exclude(node="").values_list("node", "record__labels")
    return {node for node, labels in there if not names_other_row(labels or {}, run.spec.get("identity", ""))}


def is_known(workload: Workload) -> bool:
    """Whether there are current updates of pods: without them, the nodes are those of before."""
    return mirror.as_of(workload.namespace.cluster_id, "Pod").is_current


def _open_nodes(cluster_id: int, nodes: Collection[str]) -> list[MaintenanceNode]:
    if not nodes:
        return []
    rows = MaintenanceNode.objects.filter(cluster_id=cluster_id, name__in=nodes)
    alive = {"ended_at": None, "cancel_requested_at": None, "release_requested_at": None}
    rows = rows.filter(**{f"maintenance__{column}": value for column, value in alive.items()})
    over = (Step.RELEASING, Step.DONE)
    return list(rows.exclude(step__in=over).select_related("maintenance__cluster").order_by("name"))
