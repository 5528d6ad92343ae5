"""All workers in one rack, required or preferred, on the real Kueue: two racks with 8 GPUs each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from django.test import Client

from accounts.core.actor import Actor, system_actor
from catalog.classes import actions as class_actions
from catalog.models import GpuClass, Pool
from cluster.client.kube import Kube
from cluster.manifests.metadata import CLASS_LABEL
from cluster.models import Cluster
from devcluster.client.kube import Api
from devcluster.controlplane import hardware
from portal.core.due import Deadline
from tenants.models import Namespace, Tenant
from tenants.provisioning import reconcile as tenants
from tenants.provisioning import steps
from tests.support.cluster.worker import Worker, provision
from tests.support.rows import make
from tests.workloads.cases.run_state import is_running, shown
from tests.workloads.cases.situations import as_written
from tests.workloads.cases.situations_queue import IN_QUEUE
from tests.workloads.cases.steps_followed import by_hand, follow, help_of
from workloads.launch import actions
from workloads.launch.options import Options
from workloads.launch.types import LaunchSpec

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("watcher")]
# A fixture of another module, by name.
__all__ = ["by_hand"]
KUEUE = "kueue.x-k8s.io/v1beta2"
GPU, OWN, RACK = "nvidia.com/gpu", "test.example/own-node", "example.org/rack"


@pytest.fixture
def racked(cluster: Cluster, admin: Api, unique: str) -> Iterator[GpuClass]:
    # Pods of other tests would use GPUs of a node without a taint, and Kueue counts them.
    slug = f"racked-{unique}"
    taint = {"key": CLASS_LABEL, "value": slug, "effect": "NoSchedule"}
    places = [("a-1", 6), ("a-2", 2), ("b-1", 6), ("b-2", 2)]
    nodes = [f"levels-{name}-{unique}" for name, _ in places]
    for name, (place, units) in zip(nodes, places, strict=True):
        labels = {OWN: unique, RACK: place[0]}
        hardware.add(admin, hardware.node(name, devices={GPU: units}, labels=labels, taints=[taint]))
    topology = f"gpu-portal-{unique}"
    spec = {"levels": [{"nodeLabel": RACK}, {"nodeLabel": "kubernetes.io/hostname"}]}
    admin.create({"apiVersion": KUEUE, "kind": "Topology", "metadata": {"name": topology}, "spec": spec})
    yield make.gpu_class(
        cluster, slug=slug, name="Racked", node_labels={OWN: unique}, tolerations=[taint | {"operator": "Equal"}],
        topology=topology, cpu_per_unit=1, memory_gib_per_unit=1,
    )  # fmt: skip
    for name in nodes:
        admin.delete("v1/nodes", name)
    admin.delete(f"{KUEUE}/topologies", topology)


@pytest.fixture
def team(racked: GpuClass, team_a: Tenant, namespace_a: Namespace, kube_worker: Kube, clean_cluster: None) -> Tenant:
    # More than the racks have: what waits here never waits for quota.
    make.grant(team_a, racked, units=24)
    provision(namespace_a, kube_worker)
    return team_a


@pytest.fixture
def gang(racked: GpuClass, job: LaunchSpec) -> LaunchSpec:
    """Eight workers with one GPU each, in one rack."""
    options = Options(workers=8, topology_level=RACK, topology_required=True)
    return replace(job, gpu_class=racked.slug, options=options)


@pytest.fixture
def two_in_use(racked: GpuClass, team: Tenant, job: LaunchSpec, by_alice: Actor, worker: Worker, admin: Api) -> str:
    """Two GPUs of each rack are in use; returns the name of the workload in rack b."""
    for name in ("one", "two"):
        actions.launch("team-a", replace(job, name=name, gpu_class=racked.slug, units=2), by=by_alice)
        worker(lambda name=name: is_running(name))
    places = {name: racks_of(admin, team.namespaces.get(), name) for name in ("one", "two")}
    assert sorted(places.values()) == [["a"], ["b"]]
    return next(name for name, racks in places.items() if racks == ["b"])


def racks_of(admin: Api, namespace: Namespace, workload: str) -> list[str]:
    """The rack of each pod."""
    found = admin.list("v1/pods", namespace=namespace.name, labels=f"gpu-portal/workload={workload}")
    return sorted(pod["spec"]["nodeName"].split("-")[1] for pod in found if pod["spec"].get("nodeName"))


def is_because(reason: str) -> bool:
    return shown("train").status.reason == reason


def test_a_gang_that_requires_one_rack_waits_until_one_has_room(
    two_in_use: str, gang: LaunchSpec, by_alice: Actor, worker: Worker, admin: Api, namespace_a: Namespace
) -> None:
    actions.launch("team-a", gang, by=by_alice)
    worker(lambda: is_because("level_fits_in_part"))
    helps = help_of(by_alice, "train")
    as_written(IN_QUEUE["gang that requires one rack"], shown("train").status, helps)
    assert helps.steps[0].label == f"Prefer one {RACK} instead of requiring it"
    fewer = next(step for step in helps.steps if step.verb == "fewer_workers")
    assert fewer.label == "Request 6 workers instead of 8"
    assert racks_of(admin, namespace_a, "train") == []

    actions.stop("team-a", two_in_use, by=by_alice)
    worker(lambda: is_running("train"))
    assert racks_of(admin, namespace_a, "train") == ["b"] * 8


def test_the_same_gang_starts_at_once_when_it_only_prefers_one(
    two_in_use: str, gang: LaunchSpec, by_alice: Actor, by_hand: Client, worker: Worker, admin: Api,
    namespace_a: Namespace,
) -> None:  # fmt: skip
    preferred = replace(gang, name="train", options=replace(gang.options, topology_required=False))
    actions.launch("team-a", preferred, by=by_alice)
    worker(lambda: is_running("train"))
    racks = racks_of(admin, namespace_a, "train")
    assert (len(racks), set(racks)) == (8, {"a", "b"})


def test_the_first_step_starts_it_across_racks(
    two_in_use: str, gang: LaunchSpec, by_alice: Actor, by_hand: Client, worker: Worker, admin: Api,
    namespace_a: Namespace,
) -> None:  # fmt: skip
    actions.launch("team-a", gang, by=by_alice)
    worker(lambda: is_because("level_fits_in_part"))
    follow(by_hand, help_of(by_alice, "train").steps[0].href, unticked="topology_required")
    worker(lambda: is_running("train"))
    assert set(racks_of(admin, namespace_a, "train")) == {"a", "b"}


def test_without_enough_free_units_nothing_is_promised_without_the_level(
    two_in_use: str, racked: GpuClass, gang: LaunchSpec, job: LaunchSpec, by_alice: Actor, by_hand: Client,
    worker: Worker, admin: Api, namespace_a: Namespace,
) -> None:  # fmt: skip
    """Of the 12 free GPUs another run takes 6 on one node: no 8 are free anywhere."""
    actions.launch("team-a", replace(job, name="large", gpu_class=racked.slug, units=6), by=by_alice)
    worker(lambda: is_running("large"))
    actions.launch("team-a", gang, by=by_alice)
    worker(lambda: is_because("level_fits_in_part"))
    helps = help_of(by_alice, "train")
    assert [step.verb for step in helps.steps] == ["fewer_workers", "wait"]
    follow(by_hand, helps.steps[0].href)
    worker(lambda: is_running("train"))
    racks = racks_of(admin, namespace_a, "train")
    assert (len(racks), len(set(racks))) == (6, 1)


def test_what_a_rack_never_has_room_for_and_a_level_that_the_class_loses(
    racked: GpuClass, team: Tenant, gang: LaunchSpec, by_alice: Actor, worker: Worker, kube_worker: Kube,
    namespace_a: Namespace,
) -> None:  # fmt: skip
    actions.launch("team-a", replace(gang, options=replace(gang.options, workers=9)), by=by_alice)
    worker(lambda: is_because("level_fits_in_part"))
    as_written(
        IN_QUEUE["gang that is larger than a rack"], shown("train").status, help_of(by_alice, "train")
    )  # fmt: skip

    class_actions.edit_class(racked.pk, topology="", by=system_actor("test"))

    def has_lost_it() -> bool:
        tenants.reconcile_pool(Pool.objects.get(), Deadline(), kube=kube_worker)
        namespace_a.refresh_from_db()
        steps.work_on_namespace(namespace_a, Deadline(), kube=kube_worker)
        return is_because("level_missing")

    worker(has_lost_it)
    as_written(IN_QUEUE["level that the class no longer has"], shown("train").status, help_of(by_alice, "train"))
