"""Several nodes in one maintenance: one is cut into slices, one fails, one does not respond, a fourth has no part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Delivery, User
from catalog.models import GpuClass
from cluster.client.kube import Kube
from cluster.models import Cluster
from devcluster.client.kube import Api
from devcluster.kubelet import pod_status
from devcluster.kubelet.mig_manager import FAILS, STAGED, MigManager
from devcluster.kubelet.scripted import ScriptedKubelet, runs
from operations.maintenance import actions
from operations.models import Maintenance, MaintenanceNode, MaintenanceNotice
from tenants.models import Namespace, Tenant
from tests.operations.maintenance.lab import GPU, SLICE, Lab, class_of_own_nodes, nodes_of, nodes_of_their_own
from tests.support.cluster.worker import Worker
from tests.support.waiting import wait_until
from tests.workloads.cases.live import RUNNING, told
from workloads.launch import actions as launch_actions
from workloads.launch.types import LaunchSpec
from workloads.models import Run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]
NAMES = ("good", "failing", "silent", "apart")
OPEN, CLOSED = (False, False), (True, True)


@pytest.fixture
def nodes(
    admin: Api, cluster: Cluster, kube_worker: Kube, olga: User, unique: str, watcher: None
) -> Iterator[dict[str, Lab]]:
    names = [f"{name}-{unique}" for name in NAMES]
    with nodes_of_their_own(admin, cluster, kube_worker, olga, names=names, own=unique) as found:
        yield dict(zip(NAMES, found.values(), strict=True))


@pytest.fixture
def four(
    team_a: Tenant, namespace_a: Namespace, kube_worker: Kube, unique: str, nodes: object, clean_cluster: None
) -> GpuClass:
    return class_of_own_nodes(namespace_a, team_a, kube_worker, own=unique, units=16)


@dataclass
class Passes:
    """Of both workers. `placed`: every node on which each workload was ever seen."""

    lab: Lab
    worker: Worker
    namespace: str
    placed: dict[str, list[str]] = field(default_factory=dict)

    def end_pods(self, *nodes: str) -> None:
        """As the kubelets of these nodes do."""
        for pod in self.lab.admin.list("v1/pods", namespace=self.namespace):
            if pod["spec"].get("nodeName") in nodes and "deletionTimestamp" in pod["metadata"]:
                pod_status.remove(self.lab.admin, pod)

    def until(self, condition: Callable[[], object], within_s: float = 90) -> None:
        def one_pass() -> object:
            self.lab.work()
            self.worker(lambda: True)
            for name, node in nodes_of(self.lab.admin, self.namespace).items():
                seen = self.placed.setdefault(name, [])
                if node and node not in seen:
                    seen.append(node)
            return condition()

        wait_until(one_pass, within_s=within_s, story=lambda: f"{told()} {self.placed} {self.lab.story()}")


def steps() -> dict[str, str]:
    return {node.name.partition("-")[0]: node.step for node in MaintenanceNode.objects.all()}


def problem(name: str) -> str:
    return MaintenanceNode.objects.get(name__startswith=name).problem


def doors(nodes: dict[str, Lab]) -> dict[str, tuple[bool, bool]]:
    return {name: (lab.state()["cordoned"], lab.state()["held"]) for name, lab in nodes.items()}


def test_one_fails_one_is_silent_and_the_others_go_on(
    nodes: dict[str, Lab], four: GpuClass, namespace_a: Namespace, job: LaunchSpec, by_alice: Actor, worker: Worker,
    manager: MigManager, admin: Api,
) -> None:  # fmt: skip
    kubelet, lab = ScriptedKubelet(admin), nodes["good"]
    passes = Passes(lab, worker, namespace_a.name)
    name_of = {found.node: name for name, found in nodes.items()}
    with kubelet.claim(namespace_a.name, script=runs, stuck=True, is_silent=True) as claim:
        for number in range(4):
            spec = replace(job, name=f"run-{number}", gpu_class=four.slug, units=3)
            launch_actions.launch("team-a", spec, by=by_alice)
        passes.until(lambda: list(told().values()) == [RUNNING] * 4)
        run_on = {name_of[node]: run for run, node in nodes_of(admin, namespace_a.name).items()}
        assert set(run_on) == set(NAMES)

        admin.patch("v1/nodes", nodes["failing"].node, {"metadata": {"annotations": {STAGED: FAILS}}})
        row = lab.plan(nodes=[nodes[name].node for name in NAMES[:3]], starts_at=timezone.now() + timedelta(hours=1))
        passes.until(lambda: set(steps().values()) == {"held"})
        kubelet.node_lost(nodes["silent"].node)
        passes.until(lambda: "has not responded" in problem("silent"))
        Maintenance.objects.update(starts_at=timezone.now())
        launch_actions.launch("team-a", replace(job, name="late", gpu_class=four.slug, units=3), by=by_alice)

        passes.until(lambda: "still runs there is unknown" in problem("silent"))
        responding = [nodes[name].node for name in ("good", "failing")]
        passes.until(lambda: passes.end_pods(*responding) or steps()["good"] == "done", within_s=150)
        passes.until(lambda: "could not be applied" in problem("failing"))
        assert steps() == {"good": "done", "failing": "waiting", "silent": "draining"}
        assert doors(nodes) == {"good": OPEN, "failing": CLOSED, "silent": CLOSED, "apart": OPEN}
        assert lab.state()["devices"] == {SLICE: 28}
        [stuck] = Delivery.objects.filter(subject__endswith="is stuck")
        assert nodes["failing"].node in stuck.subject
        assert told()[run_on["apart"]] == RUNNING
        moved = MaintenanceNotice.objects.filter(stage="moved").values_list("run__workload__name", flat=True)
        assert sorted(moved) == sorted(run_on[name] for name in NAMES[:3])
        assert {name: told()[run_on[name]][0] for name in ("good", "failing")} == {
            "good": "queued",
            "failing": "queued",
        }
        assert told()[run_on["silent"]] == ("unknown", "node_given_up")
        assert told()["late"][0] == "queued"

        admin.patch("v1/nodes", nodes["failing"].node, {"metadata": {"annotations": {STAGED: None}}})
        actions.cancel_maintenance(row.pk, by=lab.by)
        passes.until(lambda: Maintenance.objects.get().outcome == "canceled")
        assert set(doors(nodes).values()) == {OPEN}
        # What is done stays done: only nodes that are not released go back.
        assert lab.state()["devices"] == {SLICE: 28}
        assert nodes["failing"].state()["devices"] == {GPU: 4}
        kubelet.node_back(nodes["silent"].node)
        kubelet.unstick(claim)
        passes.until(lambda: list(told().values()).count(RUNNING) == 3)
    # Nobody else lost anything, nothing started on a node that was held, and who was queued later came last.
    assert passes.placed[run_on["apart"]] == [nodes["apart"].node]
    assert [run.number for run in Run.objects.all()] == [1] * 5
    assert not passes.placed.get("late")
    for name in NAMES[:3]:
        before, *after = passes.placed[run_on[name]]
        assert before == nodes[name].node
        assert {*after} <= {nodes["failing"].node, nodes["silent"].node}
