"""Proposals of discovery work unedited: accepted, granted, queued and launched on a real control plane with Kueue."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from accounts.core.actor import Actor, system_actor
from accounts.models import User
from catalog.classes import actions as class_actions
from catalog.classes import queries as class_queries
from catalog.classes.proposals import actions
from catalog.discovery import queries
from catalog.models import GpuClass, Image, Pool
from cluster.client.kube import Kube
from cluster.models import Cluster
from devcluster.client.kube import Api
from portal.core import due
from portal.core.due import Deadline, TryLater
from tenants.models import Namespace, Tenant
from tenants.provisioning import reconcile as tenants
from tenants.provisioning import steps
from tests.support.rows import make, mirrored
from tests.support.waiting import wait_until
from workloads.launch import actions as workloads
from workloads.launch.types import LaunchSpec
from workloads.models import Workload
from workloads.runs.reconcile import reconcile

QUEUES = "kueue.x-k8s.io/v1beta2/clusterqueues"
CLAIMS = "resource.k8s.io/v1/resourceclaims"
pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("clean_cluster"),
    pytest.mark.timeout(240),
]


@pytest.fixture
def python(db: None) -> Image:
    return Image.objects.create(name="python", reference="docker.io/library/python:3.14-slim", kind="job")


def open_queue(namespace: Namespace, kube: Kube, admin: Api) -> None:
    """Reconciles as workers do until the team's ClusterQueue admits workloads."""

    def is_open() -> bool:
        namespace.refresh_from_db()
        try:
            tenants.reconcile_pool(Pool.objects.get(cluster=namespace.cluster), Deadline(), kube=kube)
            steps.work_on_namespace(namespace, Deadline(), kube=kube)
        except TryLater:
            # A worker continues from here at its next attempt.
            return False
        queue = admin.find(QUEUES, namespace.name)
        return queue is not None and queue["spec"].get("stopPolicy", "None") == "None"

    wait_until(is_open, within_s=60)


def launch(name: str, gpu_class: GpuClass, *, by: User) -> None:
    """Launches a Job with one unit, through the same action as the page and the API."""
    wanted = LaunchSpec(
        name=name, kind="job", gpu_class=gpu_class.slug, units=1, image="python", command=("sleep", "infinity")
    )
    workloads.launch("team-a", wanted, by=Actor(user=by, via="page"))


def run_workers(kube: Kube) -> None:
    """Runs all due workloads; a worker retries by itself what the cluster did not answer."""
    while (claimed := due.claim(Workload)) is not None:
        due.run_claimed(claimed, partial(reconcile, kube=kube))


def nodes_of_pods(admin: Api, namespace: Namespace) -> dict[str, str]:
    """Class → the node that its pod is bound to."""
    pods = admin.list("v1/pods", namespace=namespace.name)
    return {
        pod["metadata"]["labels"]["gpu-portal/class"]: pod["spec"]["nodeName"]
        for pod in pods
        if pod["spec"].get("nodeName")
    }


def charged(admin: Api, namespace: Namespace) -> dict[str, dict[str, int]]:
    """Flavor → resource → units that Kueue counts as used; without zeros."""
    flavors = admin.get(QUEUES, namespace.name).get("status", {}).get("flavorsUsage", [])
    found = {
        flavor["name"]: {one["name"]: int(one["total"]) for one in flavor["resources"] if one["total"] != "0"}
        for flavor in flavors
    }
    return {flavor: units for flavor, units in found.items() if units}


def told(admin: Api, namespace: Namespace) -> str:
    """Explains a failed wait: the messages of the scheduler and Kueue."""
    kinds = ("kueue.x-k8s.io/v1beta2/workloads", "v1/pods")
    lines: list[Any] = [charged(admin, namespace)]
    for kind in kinds:
        for one in admin.list(kind, namespace=namespace.name):
            said = [condition.get("message", "") for condition in one.get("status", {}).get("conditions", [])]
            lines.append((one["metadata"]["name"], said))
    return "\n".join(map(str, lines))


@pytest.mark.usefixtures("whole_hardware")
def test_every_proposal_can_be_granted_queued_and_launched_as_it_is(
    cluster: Cluster,
    team_a: Tenant,
    namespace_a: Namespace,
    alice: User,
    python: Image,
    kube_worker: Kube,
    admin: Api,
    unique: str,
) -> None:
    """Only the slug is edited, because flavors are cluster-wide and tests run in parallel."""
    mirrored.hardware_seen(cluster)
    found = queries.discover_cluster(cluster)
    assert found is not None
    mine = [replace(one, slug=f"{one.slug[:28]}-{unique}") for one in found.proposals]
    classes = actions.accept_proposals(mine, by=system_actor("test"), cluster=cluster)
    assert len(classes) == len(found.proposals) == 17
    for gpu_class in classes:
        make.grant(team_a, gpu_class, units=1)
    open_queue(namespace_a, kube_worker, admin)

    for number, gpu_class in enumerate(classes):
        launch(f"job{number}", gpu_class, by=alice)

    def story() -> str:
        return told(admin, namespace_a)

    def are_bound() -> bool:
        run_workers(kube_worker)
        return len(nodes_of_pods(admin, namespace_a)) == len(classes)

    wait_until(are_bound, within_s=60, story=story)
    nodes = {node["metadata"]["name"]: node for node in admin.list("v1/nodes")}
    for slug, name in nodes_of_pods(admin, namespace_a).items():
        gpu_class = next(one for one in classes if one.slug == slug)
        assert gpu_class.node_labels.items() <= nodes[name]["metadata"]["labels"].items(), (slug, name)
        if gpu_class.interface == GpuClass.Interface.DEVICE_PLUGIN:
            assert int(nodes[name]["status"]["allocatable"][gpu_class.resource]) > 0, (slug, name)
    (claim,) = admin.list(CLAIMS, namespace=namespace_a.name)
    (device,) = claim["status"]["allocation"]["devices"]["results"]
    assert device["driver"] == "gpu.nvidia.com"

    expected = {class_queries.flavor_name(one): {one.resource: 1} for one in classes if one.resource}
    wait_until(lambda: charged(admin, namespace_a) == expected, within_s=60, story=story)


def test_of_two_classes_whose_labels_overlap_each_run_is_charged_to_its_own(
    cluster: Cluster,
    team_a: Tenant,
    namespace_a: Namespace,
    alice: User,
    python: Image,
    kube_worker: Kube,
    admin: Api,
    unique: str,
) -> None:
    """Every node of whole A100 GPUs matches both; neither's labels contain the other's, so that both may be open."""
    product = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
    one = make.gpu_class(cluster, slug=f"one-{unique}", node_labels=product | {"nvidia.com/gpu.count": "4"})
    two = make.gpu_class(cluster, slug=f"two-{unique}", node_labels=product | {"nvidia.com/mig.strategy": "mixed"})
    for gpu_class in (one, two):
        # An edit checks whether both classes may exist together.
        class_actions.edit_class(gpu_class.pk, summary="Overlaps the other", by=system_actor("test"))
        make.grant(team_a, gpu_class, units=3)
    open_queue(namespace_a, kube_worker, admin)

    for number, gpu_class in enumerate((two, one, two)):
        launch(f"job{number}", gpu_class, by=alice)

    expected = {class_queries.flavor_name(one): {one.resource: 1}, class_queries.flavor_name(two): {two.resource: 2}}

    def are_charged() -> bool:
        run_workers(kube_worker)
        return charged(admin, namespace_a) == expected

    wait_until(are_charged, within_s=60, story=lambda: told(admin, namespace_a))
    wait_until(lambda: set(nodes_of_pods(admin, namespace_a)) == {one.slug, two.slug}, within_s=60)
