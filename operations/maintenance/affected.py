"""Which runs are on a node, and which other pods use its devices, as the mirror shows them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from cluster.manifests import names
from cluster.manifests.metadata import names_other_row
from cluster.models import MirrorPod
from cluster.reads import queries as mirror
from portal.core.due import table_label
from workloads.models import Run, Workload

_OVER = ("Succeeded", "Failed")


@dataclass(frozen=True)
class OnNodes:
    """`runs`: unfinished ones with a pod on one of the nodes, by node. `others`: `namespace/name` of other pods that
    use devices, by node.
    """

    runs: dict[str, list[Run]]
    others: dict[str, list[str]]

    @property
    def all_runs(self) -> list[Run]:
        """Each once: a run of several workers may be on several nodes."""
        return list({run.pk: run for found in self.runs.values() for run in found}.values())

    def nodes_of(self, run: Run) -> list[str]:
        return sorted(node for node, found in self.runs.items() if any(one.pk == run.pk for one in found))


def on_nodes(cluster_id: int, nodes: Collection[str]) -> OnNodes:
    """Two queries."""
    rows = MirrorPod.objects.filter(cluster_id=cluster_id, node__in=nodes).exclude(phase__in=_OVER)
    pods = list(rows.order_by("namespace", "name").values("namespace", "name", "node", "owner", "run", "record"))
    prefix = f"{table_label(Workload)}."
    keys = {int(pod["owner"].removeprefix(prefix)) for pod in pods if pod["owner"].startswith(prefix)}
    alive = Run.objects.filter(workload__in=keys, ended_at=None)
    runs = {
        (run.workload.namespace.name, names.run_name(run.workload.name, run.number)): run
        for run in alive.select_related("workload__namespace", "workload__tenant", "requested_by")
    }
    ours: dict[str, dict[int, Run]] = {node: {} for node in nodes}
    others: dict[str, list[str]] = {node: [] for node in nodes}
    for pod in pods:
        run = runs.get((pod["namespace"], pod["run"])) if pod["owner"].startswith(prefix) else None
        if run is not None and not names_other_row(pod["record"]["labels"], run.spec.get("identity", "")):
            ours[pod["node"]][run.pk] = run
        elif pod["record"].get("claims") or any("/" in name for name in pod["record"]["requests"]):
            others[pod["node"]].append(f"{pod['namespace']}/{pod['name']}")
    return OnNodes({node: list(found.values()) for node, found in ours.items()}, others)


def is_known_since(cluster_id: int, at: datetime) -> bool:
    """Whether the mirror shows the pods as they were after `at`."""
    seen = mirror.as_of(cluster_id, "Pod")
    return seen.is_current and seen.at is not None and seen.at >= at
