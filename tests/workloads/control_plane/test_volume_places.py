"""Storage decides where a run goes, on the real Kueue and scheduler: nodes in two zones, of which the queue would
choose one where the volume is not; and the disk space that a site gives to each pod.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from accounts.core.actor import Actor
from catalog.models import GpuClass
from cluster.client.kube import Kube
from cluster.models import AppliedObject, Cluster
from cluster.reads import queries as mirror
from devcluster.client.kube import Api
from devcluster.controlplane import hardware
from tenants.models import Namespace, Tenant
from tests.support.cluster.worker import Worker, provision
from tests.support.rows import make
from tests.support.waiting import wait_until
from tests.workloads.cases.run_state import run_of, shown
from workloads.launch import actions
from workloads.launch.types import LaunchSpec
from workloads.models import Run, Volume
from workloads.status.types import Phase

OWN, ZONE, HOST = "test.example/own-node", "topology.kubernetes.io/zone", "kubernetes.io/hostname"
TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
LAUNCHES = 20
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("watcher")]
Json = dict[str, Any]


@pytest.fixture
def nodes(admin: Api, unique: str) -> Iterator[dict[str, str]]:
    """Two nodes of ten GPUs in each of two zones: name and zone. Those of zone a come first by name."""
    found = {f"{zone}-{n}-{unique}": zone for zone in "ab" for n in (1, 2)}
    for name, zone in found.items():
        labels = {OWN: unique, ZONE: zone}
        capacity = {"cpu": 64, "memory": "256Gi", "pods": 110, "ephemeral-storage": "100Gi"}
        node = hardware.node(name, devices={"nvidia.com/gpu": 10}, labels=labels, taints=[TAINT], capacity=capacity)
        hardware.add(admin, node)
    yield found
    for name in found:
        admin.delete("v1/nodes", name)


@pytest.fixture
def zoned(cluster: Cluster, team_a: Tenant, unique: str, nodes: dict[str, str]) -> GpuClass:
    labels = {OWN: unique}
    found = make.gpu_class(cluster, slug=f"zoned-{unique}", node_labels=labels, cpu_per_unit=1, memory_gib_per_unit=1)
    make.grant(team_a, found, units=LAUNCHES + 4)
    return found


@pytest.fixture
def wanted(
    zoned: GpuClass, namespace_a: Namespace, kube_worker: Kube, job: LaunchSpec, clean_cluster: None
) -> LaunchSpec:
    provision(namespace_a, kube_worker)
    return replace(job, gpu_class=zoned.slug)


class Volumes:
    """Volumes that earlier runs made: their claims are bound to storage that one zone or one node can mount."""

    def __init__(self, admin: Api, namespace: Namespace, unique: str) -> None:
        self.admin, self.namespace, self.unique = admin, namespace, unique
        self.made: list[str] = []

    def make(self, name: str, key: str, value: str) -> None:
        row = Volume.objects.create(namespace=self.namespace, name=name, size_gib=1, due_at=None)
        owner, volume, place = f"workloads.volume.{row.pk}", f"{name}-{self.unique}", self.namespace.name
        term = {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
        spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
        claim_ref = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": place, "name": name}
        self.admin.create(
            {
                "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume},
                "spec": {
                    **spec, "capacity": {"storage": "1Gi"}, "local": {"path": "/none"}, "claimRef": claim_ref,
                    "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
                },
            }
        )  # fmt: skip
        self.made.append(volume)
        labels = {"app.kubernetes.io/managed-by": "gpu-portal", "gpu-portal/owner": owner}
        claim = self.admin.create(
            {
                "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "metadata": {"name": name, "namespace": place, "labels": labels},
                "spec": {**spec, "volumeName": volume, "resources": {"requests": {"storage": "1Gi"}}},
            }
        )  # fmt: skip
        AppliedObject.objects.create(
            cluster=self.namespace.cluster, owner=owner, kind="PersistentVolumeClaim", namespace=place, name=name,
            uid=claim["metadata"]["uid"], result="applied", manifest_hash="x",
        )  # fmt: skip

    def are_known(self) -> bool:
        cluster_id = self.namespace.cluster_id
        claims = mirror.objects(cluster_id, kind="PersistentVolumeClaim", namespace=self.namespace.name)
        there = {one.name for one in mirror.objects(cluster_id, kind="PersistentVolume")}
        return len(claims) == len(self.made) and {one.record["volume"] for one in claims} == {*self.made} <= there


@pytest.fixture
def volumes(admin: Api, namespace_a: Namespace, unique: str) -> Iterator[Volumes]:
    found = Volumes(admin, namespace_a, unique)
    yield found
    for name in found.made:
        admin.delete("v1/persistentvolumes", name)


def assigned(admin: Api, namespace: Namespace) -> list[str]:
    """The nodes that Kueue assigned to pods; it removes its gate then."""
    pods = admin.list("v1/pods", namespace=namespace.name)
    return [pod["spec"]["nodeSelector"].get(HOST, "") for pod in pods if not pod["spec"].get("schedulingGates")]


def launch_all(volumes: Volumes, wanted: LaunchSpec, by: Actor, key: str, value: str) -> None:
    names = [f"run-{n}" for n in range(LAUNCHES)]
    for name in names:
        volumes.make(name, key, value)
    wait_until(volumes.are_known)
    for name in names:
        actions.launch("team-a", replace(wanted, name=name, volume=name), by=by)


def are_running() -> bool:
    return Run.objects.exclude(started_at=None).count() == LAUNCHES


def test_with_volumes_of_one_zone_all_are_admitted_there_and_the_next_waits_for_it(
    volumes: Volumes, wanted: LaunchSpec, by_alice: Actor, worker: Worker, admin: Api, namespace_a: Namespace,
    nodes: dict[str, str],
) -> None:  # fmt: skip
    launch_all(volumes, wanted, by_alice, ZONE, "b")
    worker(lambda: len(assigned(admin, namespace_a)) == LAUNCHES, within_s=120)
    assert [nodes[name] for name in assigned(admin, namespace_a)] == ["b"] * LAUNCHES
    worker(are_running, within_s=120)

    volumes.make("next", ZONE, "b")
    wait_until(volumes.are_known)
    actions.launch("team-a", replace(wanted, name="next", volume="next"), by=by_alice)
    worker(lambda: shown("next").status.reason == "no_node_fits")
    status = shown("next").status
    assert status.phase is Phase.QUEUED
    assert "Its volume next can be mounted only in zone b, not on 2 other nodes of" in status.sentence

    actions.launch("team-a", replace(wanted, name="bare"), by=by_alice)
    worker(lambda: run_of("bare").started_at)

    admin.delete("v1/persistentvolumeclaims", "next", namespace=namespace_a.name)
    worker(lambda: shown("next").status.reason == "volume_missing")
    assert shown("next").status.phase is Phase.BLOCKED


def test_with_volumes_on_the_disk_of_a_node_all_are_admitted_on_it(
    volumes: Volumes, wanted: LaunchSpec, by_alice: Actor, worker: Worker, admin: Api, namespace_a: Namespace,
    unique: str,
) -> None:  # fmt: skip
    node = f"b-2-{unique}"
    grown = {"capacity": {"nvidia.com/gpu": "20"}, "allocatable": {"nvidia.com/gpu": "20"}}
    admin.patch_status("v1/nodes", node, grown)
    launch_all(volumes, wanted, by_alice, HOST, node)
    worker(lambda: len(assigned(admin, namespace_a)) == LAUNCHES, within_s=120)
    assert assigned(admin, namespace_a) == [node] * LAUNCHES
    worker(are_running, within_s=120)


def test_with_a_disk_size_of_the_site_a_run_gets_a_node_that_has_it(
    wanted: LaunchSpec, by_alice: Actor, worker: Worker, admin: Api, namespace_a: Namespace, cluster: Cluster
) -> None:
    Cluster.objects.filter(pk=cluster.pk).update(site={"pod-disk": "60"})
    for name in ("one", "two"):
        actions.launch("team-a", replace(wanted, name=name), by=by_alice)
    worker(lambda: run_of("one").started_at and run_of("two").started_at)
    pods = admin.list("v1/pods", namespace=namespace_a.name)
    assert len({pod["spec"]["nodeName"] for pod in pods}) == 2
    assert [pod["spec"]["containers"][0]["resources"]["limits"]["ephemeral-storage"] for pod in pods] == ["60Gi"] * 2
