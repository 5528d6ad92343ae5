"""Jobs in the queue of team A, as the worker creates them, and what the real Kueue reports about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from catalog.classes import queries
from catalog.models import GpuClass, Pool
from cluster.client.kube import Kube
from cluster.manifests import run as manifests
from cluster.manifests.run_spec import RunSpec
from devcluster.client.kube import Api
from portal.core.due import Deadline, Outcome
from tenants.models import Namespace
from tenants.provisioning import reconcile, steps

WORKLOADS = "kueue.x-k8s.io/v1beta2/workloads"


@pytest.fixture
def look(a100: GpuClass, namespace_a: Namespace, kube_worker: Kube) -> Callable[[], Outcome]:
    """Reconciles the pool, then the namespace, as the worker does."""
    pool = Pool.objects.create(cluster=a100.cluster)

    def look() -> Outcome:
        pool.refresh_from_db()
        namespace_a.refresh_from_db()
        reconcile.reconcile_pool(pool, Deadline(), kube=kube_worker)
        return steps.work_on_namespace(namespace_a, Deadline(), kube=kube_worker)

    return look


def launch(kube: Kube, gpu_class: GpuClass, namespace: Namespace, *, name: str, units: int = 1) -> None:
    wanted = spec(gpu_class, namespace, name=name, units=units)
    if gpu_class.interface == "dra":
        kube.create(manifests.claim_template(wanted))
    kube.create(manifests.job(wanted))


def spec(gpu_class: GpuClass, namespace: Namespace, *, name: str, units: int = 1) -> RunSpec:
    """One core and 1 GiB whatever the number of units: these tests are about the devices that are charged."""
    pod = queries.pod_spec(gpu_class, units=units, image="docker.io/library/python:3.14-slim", namespace=namespace.name)
    return RunSpec(
        **vars(replace(pod, cpu=1, memory_gib=1)),
        owner="workloads.workload.1",
        workload=name,
        number=1,
        kind="job",
        weight="1",
        price_per_unit_hour="0",
        command=("sleep", "infinity"),
        shared_memory_gib=1,
        claim="",
    )


def admitted(admin: Api, namespace: Namespace) -> dict[str, dict[str, str]]:
    """Returns the flavors of each Job that holds quota now."""
    found = {}
    for workload in admin.list(WORKLOADS, namespace=namespace.name):
        admission = workload.get("status", {}).get("admission")
        if admission:
            owner = workload["metadata"]["ownerReferences"][0]["name"]
            found[owner] = admission["podSetAssignments"][0].get("flavors", {})
    return found
