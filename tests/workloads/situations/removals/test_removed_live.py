"""What removes running pods from their nodes, on the real control plane.

API server, scheduler, taint eviction, Job controller and Kueue are real; the test scripts the kubelets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from accounts.core.actor import Actor
from catalog.models import GpuClass
from cluster.client.kube import Kube
from cluster.models import Cluster
from devcluster.client.kube import Api
from devcluster.client.types import Json
from devcluster.controlplane import hardware
from devcluster.kubelet.scripted import ScriptedKubelet
from tenants.models import Namespace, Tenant
from tests.support.cluster.worker import Worker, provision
from tests.support.rows import make
from tests.workloads.cases.live import RUNNING, on_nodes, told
from tests.workloads.cases.staged import until_as_written
from tests.workloads.situations.removals.written import ALSO, REMOVALS
from tests.workloads.situations.test_situations_pods_live import kubelet_runs
from workloads.launch import actions
from workloads.launch.options import Options
from workloads.launch.types import LaunchSpec

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("watcher")]

CARDS = "nvidia.com/gpu"
TAINT = {"key": CARDS, "value": "present", "effect": "NoSchedule"}
CLEARED = {"key": "example.org/maintenance", "value": "on", "effect": "NoExecute"}
# The critical pods of nodes are in this namespace.
SYSTEM = "kube-system"
RUNS = {
    "evicted": REMOVALS["drain"],
    "yields": REMOVALS["preemption by the scheduler"],
    "cleared": ALSO["taint that removes pods"],
    "unready": REMOVALS["node not ready"],
    "lost": REMOVALS["node given up"],
}


@pytest.fixture
def six(admin: Api, cluster: Cluster, unique: str) -> Iterator[GpuClass]:
    """Six nodes with one GPU each, which no other pods request: one more than the test runs."""
    product = f"RM-{unique}"
    labels = {CARDS: {"product": product, "present": True}}
    for number in range(6):
        node = hardware.node(f"rm-{number}-{unique}", devices={CARDS: 1}, labels=labels, taints=[TAINT])
        hardware.add(admin, node)
    yield make.gpu_class(
        cluster, slug=f"rm-{unique}", name="Removed", node_labels={f"{CARDS}.product": product}, cpu_per_unit=1,
        memory_gib_per_unit=1,
    )  # fmt: skip
    for number in range(6):
        admin.delete("v1/nodes", f"rm-{number}-{unique}")


def critical(node: str, unique: str) -> Json:
    """A pod that needs all cores of the node and precedes all others."""
    container = {"name": "one", "image": "none", "resources": {"requests": {"cpu": "64"}}}
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"critical-{unique}", "namespace": SYSTEM},
        "spec": {
            "priorityClassName": "system-node-critical", "nodeSelector": {"kubernetes.io/hostname": node},
            "tolerations": [{"operator": "Exists"}], "containers": [container], "terminationGracePeriodSeconds": 0,
        },
    }  # fmt: skip


def evict(admin: Api, pod: Json) -> None:
    """As `kubectl drain` does."""
    meta = {"name": pod["metadata"]["name"], "namespace": pod["metadata"]["namespace"]}
    path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/eviction"
    admin.request("POST", path, {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta})


def test_what_removes_pods_from_nodes(
    six: GpuClass, team_a: Tenant, namespace_a: Namespace, kube_worker: Kube, clean_cluster: None, job: LaunchSpec,
    by_alice: Actor, worker: Worker, admin: Api, unique: str,
) -> None:  # fmt: skip
    make.grant(team_a, six, units=6)
    provision(namespace_a, kube_worker)
    space, kubelet = namespace_a.name, ScriptedKubelet(admin)
    wanted = replace(job, gpu_class=six.slug, options=Options(checkpoints=True))
    with kubelet.claim(space, stuck=True) as claim:
        for name in RUNS:
            actions.launch("team-a", replace(wanted, name=name), by=by_alice)
        worker(lambda: RUNS.keys() <= set(on_nodes(admin, space)))
        pods = {name: kubelet.bound(space, labels=f"gpu-portal/workload={name}") for name in RUNS}
        for pod in pods.values():
            kubelet.running(pod)
        worker(lambda: told() == dict.fromkeys(RUNS, RUNNING))
        nodes = {name: pod["spec"]["nodeName"] for name, pod in pods.items()}

        admin.patch("v1/nodes", nodes["evicted"], {"spec": {"unschedulable": True}})
        evict(admin, pods["evicted"])
        admin.create(critical(nodes["yields"], unique))
        admin.patch("v1/nodes", nodes["cleared"], {"spec": {"taints": [TAINT, CLEARED]}})
        kubelet.node_lost(nodes["lost"])
        evict(admin, pods["lost"])
        kubelet.node_unready(nodes["unready"], "container runtime is down")
        until_as_written(worker, by_alice, RUNS)

        # The pods end, and all but the drained node are as before.
        admin.delete("v1/pods", f"critical-{unique}", namespace=SYSTEM, grace_s=0)
        admin.patch("v1/nodes", nodes["cleared"], {"spec": {"taints": [TAINT]}})
        for name in ("unready", "lost"):
            kubelet.node_back(nodes[name])
        kubelet.unstick(claim)
        worker(lambda: kubelet_runs(kubelet, space, set(RUNS)) and told() == dict.fromkeys(RUNS, RUNNING), within_s=120)
        now = {name: kubelet.bound(space, labels=f"gpu-portal/workload={name}") for name in RUNS}
    assert now["evicted"]["spec"]["nodeName"] != nodes["evicted"], "that node is still cordoned"
    assert now["unready"]["metadata"]["uid"] == pods["unready"]["metadata"]["uid"], "it ran there all the time"
