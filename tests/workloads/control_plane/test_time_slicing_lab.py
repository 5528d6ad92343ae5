"""The time-slicing lab of the tutorial: 4 GPUs with 4 replicas each are 16 units; the seventeenth workload waits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from accounts.core.actor import Actor
from catalog.classes.capacity import queries as capacity_queries
from catalog.models import GpuClass
from cluster.client.kube import Kube
from cluster.models import Cluster
from devcluster.client.kube import Api
from devcluster.controlplane import hardware
from tenants.models import Namespace, Tenant
from tests.support.cluster.worker import Worker, provision
from tests.support.rows import make
from tests.support.waiting import wait_until
from tests.workloads.cases.run_state import is_running, shown
from workloads.launch import actions
from workloads.launch.types import LaunchSpec
from workloads.models import Run
from workloads.status.types import Phase

CARDS, TURNS = 4, 4
RESOURCE = "nvidia.com/gpu.shared"
LAB = "example.org/lab"  # a label of this test's node only

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("watcher"), pytest.mark.timeout(240)]


@pytest.fixture
def node(admin: Api, unique: str) -> Iterator[str]:
    """A node as the device plugin and GPU Feature Discovery leave it: resource renamed, each GPU counted four times."""
    name = f"lab-{unique}"
    labels = {
        LAB: unique,
        "nvidia.com/gpu.product": f"LAB-{unique}",
        "nvidia.com/gpu.count": CARDS,
        "nvidia.com/gpu.replicas": TURNS,
        "nvidia.com/gpu.sharing-strategy": "time-slicing",
    }
    taints = [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]
    hardware.add(admin, hardware.node(name, devices={RESOURCE: CARDS * TURNS}, labels=labels, taints=taints))
    yield name
    admin.delete("v1/nodes", name)


@pytest.fixture
def turns(cluster: Cluster, node: str, unique: str) -> GpuClass:
    return make.gpu_class(
        cluster,
        slug=f"turns-{unique}",
        name="Lab card in turns",
        product=f"LAB-{unique}",
        sharing=GpuClass.Sharing.TIME_SLICING,
        replicas=TURNS,
        units_per_workload=1,
        resource=RESOURCE,
        node_labels={LAB: unique},
        cpu_per_unit=1,
        memory_gib_per_unit=2,
    )


@pytest.fixture
def team(turns: GpuClass, team_a: Tenant, namespace_a: Namespace, kube_worker: Kube, clean_cluster: None) -> Tenant:
    """The team holds one unit more than exist, so that the hardware limits it and not the quota."""
    make.grant(team_a, turns, units=CARDS * TURNS + 1)
    provision(namespace_a, kube_worker)
    return team_a


def running() -> int:
    return Run.objects.filter(started_at__isnull=False, ended_at=None).count()


def test_sixteen_run_and_the_seventeenth_waits_for_the_resource_by_name(
    team: Tenant, turns: GpuClass, job: LaunchSpec, by_alice: Actor, worker: Worker, node: str, admin: Api
) -> None:
    wait_until(
        lambda: capacity_queries.capacities(turns.cluster, [turns])[turns.pk].free == 16, what="16 units are free"
    )
    names = [f"lab-{number:02}" for number in range(1, CARDS * TURNS + 1)]
    for name in names:
        actions.launch("team-a", replace(job, name=name, gpu_class=turns.slug), by=by_alice)
    worker(lambda: running() == 16 and all(map(is_running, names)), within_s=120)
    capacity = capacity_queries.capacities(turns.cluster, [turns])[turns.pk]
    assert (capacity.allocatable, capacity.used, capacity.free) == (16, 16, 0)
    assert {shown(name).status.facts["node"] for name in names} == {node}

    actions.launch("team-a", replace(job, name="lab-17", gpu_class=turns.slug), by=by_alice)
    worker(lambda: RESOURCE in shown("lab-17").status.sentence, within_s=60)
    waiting = shown("lab-17").status
    assert (waiting.phase, waiting.reason) == (Phase.QUEUED, "no_node_fits")
    assert waiting.sentence == f"No single node has 1 unit of Lab card in turns free: no {RESOURCE} is free."

    actions.stop("team-a", "lab-01", by=by_alice)
    # Another pod may get the freed unit a moment before the end of the stopped run is recorded.
    worker(lambda: is_running("lab-17") and running() == 16, within_s=60)
    assert Run.objects.get(workload__name="lab-01").ended_at
