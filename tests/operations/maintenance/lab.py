"""A node of its own for maintenance, a worker that can die at any write, and what an independent client sees."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass
from cluster.client.kube import Kube
from cluster.client.types import ApiObject
from cluster.models import Cluster, MirrorNode
from devcluster.client.kube import Api
from devcluster.controlplane import hardware
from operations.maintenance.actions import plan_maintenance
from operations.maintenance.reconcile import reconcile_maintenance
from operations.models import Maintenance, MaintenanceNode
from portal.core import due
from tenants.models import Namespace, Tenant
from tests.support.cluster.worker import provision
from tests.support.processes.deaths import WorkerDied
from tests.support.rows import make
from tests.support.waiting import wait_until

GPU, SLICE = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb"
NVIDIA_TAINT = {"key": GPU, "value": "present", "effect": "NoSchedule"}
CONFIG, STATE = "nvidia.com/mig.config", "nvidia.com/mig.config.state"


# Label of the nodes of one test, by which a class finds them.
OWN = "test.example/own-node"


@dataclass
class DyingKube:
    """The worker's client, which ends the process at one of its writes to nodes: before it, or right after it. Or as
    soon as the node is in the step `dies_in`.
    """

    kube: Kube
    dies_at: int = 0
    dies_in: str = ""
    is_after: bool = False
    writes: list[str] = field(default_factory=list)

    def merge(self, kind: str, **what: Any) -> ApiObject:
        is_it = len(self.writes) + 1 == self.dies_at
        if is_it and not self.is_after:
            self._die()
        # A conflict with another writer is no write.
        answer = self.kube.merge(kind, **what)
        self.writes.append(kind)
        if is_it:
            self._die()
        return answer

    def _die(self) -> None:
        self.dies_at = 0
        raise WorkerDied

    def get(self, kind: str, **what: Any) -> ApiObject:
        if MaintenanceNode.objects.filter(name=what["name"], step=self.dies_in).exists():
            raise WorkerDied
        return self.kube.get(kind, **what)


@dataclass
class Lab:
    """One node with four GPUs, which can have MIG. `kube`: of the worker."""

    admin: Api
    cluster: Cluster
    kube: Any
    by: Actor
    node: str
    labels: dict[str, str] = field(default_factory=dict)

    def add(self) -> None:
        labels = {
            "nvidia.com/gpu.product": self.node, "nvidia.com/gpu.count": "4", CONFIG: "all-disabled", STATE: "success",
            "nvidia.com/gpu.memory": "81920", "nvidia.com/gpu.replicas": "1", "nvidia.com/gpu.sharing-strategy": "none",
            **self.labels,
        }  # fmt: skip
        taints = [NVIDIA_TAINT]
        hardware.add(self.admin, hardware.node(self.node, devices={GPU: 4}, labels=labels, taints=taints))
        seen = MirrorNode.objects.filter(cluster_id=self.cluster.pk, name=self.node, ready=True)
        wait_until(seen.exists, within_s=30)
        wait_until(lambda: any(c["status"] == "True" for c in self._conditions() if c["type"] == "Ready"), within_s=30)

    def _conditions(self) -> list[dict[str, Any]]:
        return list(self.seen()["status"].get("conditions", []))

    def remove(self) -> None:
        self.admin.delete("v1/nodes", self.node)

    def seen(self) -> dict[str, Any]:
        return self.admin.get("v1/nodes", self.node)

    def state(self) -> dict[str, Any]:
        """What maintenance may change, by an independent client."""
        node = self.seen()
        taints = [one["key"] for one in node["spec"].get("taints", [])]
        labels = node["metadata"]["labels"]
        return {
            "cordoned": node["spec"].get("unschedulable", False),
            "held": "gpu-portal/maintenance" in taints,
            "taints": sorted(key for key in taints if not key.startswith(("gpu-portal/", "node.kubernetes.io/"))),
            "noted": "gpu-portal/maintenance" in node["metadata"].get("annotations", {}),
            "config": labels.get(CONFIG),
            "devices": {k: int(v) for k, v in node["status"]["allocatable"].items() if "nvidia.com/" in k and int(v)},
        }

    def plan(self, *, nodes: Collection[str] = (), **more: Any) -> Maintenance:
        """Begins now, on this node by default; a repartition into slices by default."""
        now = timezone.now()
        values = {
            "kind": "repartition", "reason": "more slices", "holds_from": now, "starts_at": now,
            "ends_at": now + timedelta(hours=2), "mig_config": "all-1g.10gb", "expected": {SLICE: 28},
        }  # fmt: skip
        return plan_maintenance(self.cluster, nodes or [self.node], **{**values, **more}, by=self.by)

    def work(self) -> None:
        """One pass of a worker. The lease of a worker that died is over."""
        Maintenance.objects.filter(ended_at=None).update(due_at=timezone.now(), leased_until=None)
        if (claimed := due.claim(Maintenance)) is not None:
            due.run_claimed(claimed, partial(reconcile_maintenance, kube=self.kube))

    def until(
        self, condition: Callable[[], object], *, within_s: float = 40, also: Callable[[], object] = bool
    ) -> None:
        """Works until the condition holds. `also`: what other workers do meanwhile."""

        def step() -> object:
            self.work()
            also()
            return condition()

        wait_until(step, within_s=within_s, every_s=0.2, story=self.story)

    def story(self) -> str:
        rows = [
            (m.error_code, m.error_text, one.step, one.problem, one.before)
            for m in Maintenance.objects.all()
            for one in m.nodes.all()
        ]
        return f"{rows} {self.admin.find('v1/nodes', self.node)}"


@contextmanager
def nodes_of_their_own(
    admin: Api, cluster: Cluster, kube: Kube, olga: User, *, names: Collection[str], own: str
) -> Iterator[dict[str, Lab]]:
    """By name. `own`: value of their label OWN."""
    by = Actor(olga, via="page")
    labs = {name: Lab(admin, cluster, DyingKube(kube), by, name, labels={OWN: own}) for name in names}
    for lab in labs.values():
        lab.add()
    try:
        yield labs
    finally:
        for lab in labs.values():
            lab.remove()


def class_of_own_nodes(namespace: Namespace, team: Tenant, kube: Kube, *, own: str, units: int) -> GpuClass:
    """A class of these nodes, with `units` granted, and an open queue."""
    found = make.gpu_class(namespace.cluster, slug=f"own-{own}", name="Own", node_labels={OWN: own})
    make.grant(team, found, units=units)
    provision(namespace, kube)
    return found


def nodes_of(admin: Api, namespace: str) -> dict[str, str]:
    """By workload: the node of its pod, as an independent client sees it."""
    return {
        pod["metadata"]["labels"]["gpu-portal/workload"]: pod["spec"].get("nodeName", "")
        for pod in admin.list("v1/pods", namespace=namespace)
        if pod["status"]["phase"] not in ("Succeeded", "Failed") and "deletionTimestamp" not in pod["metadata"]
    }
