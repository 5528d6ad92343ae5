"""An error of a GPU that the node problem detector reports, on the real control plane: which runs tell of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from accounts.core.actor import Actor
from catalog.models import GpuClass
from cluster.client.kube import Kube
from cluster.manifests.run import WORKLOAD_LABEL
from devcluster.client.kube import Api
from devcluster.client.types import Json
from devcluster.kubelet import pod_status
from devcluster.kubelet.scripted import ScriptedKubelet
from tenants.models import Namespace, Tenant
from tests.support.cluster.worker import Worker, provision
from tests.support.rows import make
from tests.workloads.cases.live import RUNNING, on_nodes, told
from tests.workloads.cases.staged import until_as_written
from tests.workloads.situations.kubelets.replay import runs_latest
from tests.workloads.situations.kubelets.test_said_live import said
from tests.workloads.situations.kubelets.written import OF_NODES, SAYINGS
from workloads.launch import actions
from workloads.launch.types import LaunchSpec
from workloads.models import Run
from workloads.runs.kept import late_errors

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("watcher")]

# A fixture of another module, by name.
__all__ = ["said"]

XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."


def test_an_error_of_a_gpu_on_the_node_is_told(
    said: GpuClass, team_a: Tenant, namespace_a: Namespace, kube_worker: Kube, clean_cluster: None, job: LaunchSpec,
    by_alice: Actor, worker: Worker, admin: Api, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Of three runs on the node, the one that crashed for no other known reason, which had ended before the report."""
    monkeypatch.setattr(late_errors, "SETTLES_AFTER", timedelta(seconds=5))
    make.grant(team_a, said, units=4)
    provision(namespace_a, kube_worker)
    space, kubelet = namespace_a.name, ScriptedKubelet(admin)

    def launch(*names: str) -> None:
        for name in names:
            actions.launch("team-a", replace(job, name=name, gpu_class=said.slug), by=by_alice)
        worker(lambda: set(names) <= set(on_nodes(admin, space)))
        for name in names:
            kubelet.running(kubelet.bound(space, labels=f"{WORKLOAD_LABEL}={name}"))
        worker(lambda: all(told()[name] == RUNNING for name in names))

    def end(name: str, message: str = "") -> None:
        kubelet.exited(kubelet.bound(space, labels=f"{WORKLOAD_LABEL}={name}"), 1, message=message)

    with kubelet.claim(space):
        launch("fallen", "full", "sound")
        end("fallen")
        worker(lambda: Run.objects.filter(workload__name="fallen", reason="crashed", ended_at__isnull=False))
        event = admin.create(of_node(kubelet.bound(space, labels=f"{WORKLOAD_LABEL}=sound")["spec"]["nodeName"]))
        end("full", "CUDA out of memory. Tried to allocate 20.00 GiB.")
        written = {"fallen": OF_NODES["node_gpu_error"], "full": SAYINGS["out_of_gpu_memory"]}
        until_as_written(worker, by_alice, written)
        assert told()["sound"] == RUNNING

        worker(lambda: Run.objects.filter(workload__name="fallen", reason="node_gpu_error", ended_at__isnull=False))
        admin.delete("v1/events", event["metadata"]["name"], namespace="default")
        actions.start("team-a", "fallen", by=by_alice)
        worker(lambda: runs_latest(kubelet, space, {"fallen", "sound"}) and told()["fallen"] == RUNNING)


def of_node(name: str) -> Json:
    """As the node problem detector makes it: about the node, in the namespace default."""
    return {
        "apiVersion": "v1", "kind": "Event", "metadata": {"generateName": f"{name}.", "namespace": "default"},
        "involvedObject": {"kind": "Node", "name": name, "uid": name}, "type": "Warning", "reason": "GPUXidError",
        "message": XID, "source": {"component": "kernel-monitor", "host": name}, "count": 1,
        "firstTimestamp": pod_status.now(), "lastTimestamp": pod_status.now(),
    }  # fmt: skip
