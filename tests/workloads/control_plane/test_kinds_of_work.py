"""Differences between classes and workloads on the real control plane: DRA devices, no GPU at all, volumes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from accounts.core.actor import Actor
from catalog.models import GpuClass
from cluster.client.kube import Kube
from cluster.models import Cluster
from devcluster.client.kube import Api
from tenants.models import Namespace, Tenant
from tests.support.cluster.worker import Worker, provision
from tests.support.rows import make
from tests.workloads.cases.run_state import is_ready, is_running, named, run_of, shown
from workloads.launch import actions
from workloads.launch.options import Options
from workloads.launch.types import LaunchSpec

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("watcher")]


@pytest.fixture
def h100(cluster: Cluster, unique: str) -> GpuClass:
    return make.gpu_class(
        cluster,
        slug=f"h100-{unique}",
        name="H100 80GB",
        interface="dra",
        resource="dra.portal/h100",
        device_class="gpu.nvidia.com",
        device_selector="device.attributes['gpu.nvidia.com'].productName == 'NVIDIA H100 80GB HBM3'",
        node_labels={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
    )


@pytest.fixture
def cpu(cluster: Cluster, unique: str) -> GpuClass:
    return make.gpu_class(
        cluster,
        slug=f"cpu-{unique}",
        name="CPU",
        interface="none",
        resource="",
        node_labels={},
        tolerations=[],
        vendor="",
        product="",
        cpu_per_unit=1,
        memory_gib_per_unit=2,
    )


@pytest.fixture
def everything(
    h100: GpuClass, cpu: GpuClass, granted: Tenant, namespace_a: Namespace, kube_worker: Kube, clean_cluster: None
) -> Tenant:
    """Team A holds two units of each class; its namespace is provisioned."""
    for gpu_class in (h100, cpu):
        make.grant(granted, gpu_class, units=2)
    provision(namespace_a, kube_worker)
    return granted


def test_devices_through_dra(
    everything: Tenant,
    h100: GpuClass,
    namespace_a: Namespace,
    job: LaunchSpec,
    by_alice: Actor,
    worker: Worker,
    admin: Api,
) -> None:
    actions.launch("team-a", replace(job, gpu_class=h100.slug, units=2), by=by_alice)
    worker(lambda: is_running("train"))
    claim = admin.list("resource.k8s.io/v1/resourceclaims", namespace=namespace_a.name)[0]
    assert len(claim["status"]["allocation"]["devices"]["results"]) == 2
    assert shown("train").status.facts["node"] == "h100"

    actions.stop("team-a", "train", by=by_alice)
    worker(lambda: run_of("train").ended_at)
    assert named(admin, "resource.k8s.io/v1/resourceclaimtemplates", namespace_a.name) == []


def test_without_a_gpu_it_runs_on_a_node_without_one(
    everything: Tenant, cpu: GpuClass, job: LaunchSpec, by_alice: Actor, worker: Worker
) -> None:
    actions.launch("team-a", replace(job, gpu_class=cpu.slug), by=by_alice)
    worker(lambda: is_running("train"))
    assert shown("train").status.facts["node"].startswith("cpu")


def test_without_a_gpu_in_a_team_that_holds_no_other_class(
    team_a: Tenant,
    cpu: GpuClass,
    namespace_a: Namespace,
    job: LaunchSpec,
    by_alice: Actor,
    worker: Worker,
    kube_worker: Kube,
    clean_cluster: None,
) -> None:
    """Kueue treats a queue without a plain flavor as one for topologies only, and would never admit this run."""
    make.grant(team_a, cpu, units=2)
    provision(namespace_a, kube_worker)
    actions.launch("team-a", replace(job, gpu_class=cpu.slug), by=by_alice)
    worker(lambda: is_running("train"))


def test_all_workers_of_a_job_use_a_shared_volume(
    everything: Tenant, namespace_a: Namespace, job: LaunchSpec, by_alice: Actor, worker: Worker, admin: Api
) -> None:
    """The storage of the demo is local, and provides whatever access mode is asked for."""
    Cluster.objects.filter(pk=namespace_a.cluster_id).update(site={"storage-classes": "standard ReadWriteMany"})
    two = replace(job, units=1, options=Options(workers=2), volume="all")
    actions.launch("team-a", two, by=by_alice)
    worker(lambda: is_running("train"), within_s=90)
    claim = admin.get("v1/persistentvolumeclaims", "all", namespace=namespace_a.name)
    assert (claim["spec"]["storageClassName"], claim["spec"]["accessModes"]) == ("standard", ["ReadWriteMany"])
    pods = admin.list("v1/pods", namespace=namespace_a.name)
    mounted = [
        [one["persistentVolumeClaim"]["claimName"] for one in pod["spec"]["volumes"] if "persistentVolumeClaim" in one]
        for pod in pods
    ]
    assert mounted == [["all"], ["all"]]


def test_a_volume_outlives_the_workload_that_made_it(
    everything: Tenant, namespace_a: Namespace, notebook: LaunchSpec, by_alice: Actor, worker: Worker, admin: Api
) -> None:
    actions.launch("team-a", replace(notebook, volume="data", volume_gib=5), by=by_alice)
    worker(lambda: is_ready("one"))
    assert [step.title for step in shown("one").steps][3] == "Storage"
    actions.delete("team-a", "one", by=by_alice)
    # The volume is free when its run has ended, a moment after its pod.
    worker(lambda: not admin.list("v1/pods", namespace=namespace_a.name) and run_of("one").ended_at)
    claim = admin.get("v1/persistentvolumeclaims", "data", namespace=namespace_a.name)
    assert claim["spec"]["resources"]["requests"]["storage"] == "5Gi"

    actions.launch("team-a", replace(notebook, name="two", volume="data"), by=by_alice)
    worker(lambda: is_ready("two"))
