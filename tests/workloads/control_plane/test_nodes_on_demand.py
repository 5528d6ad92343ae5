"""A class without nodes, whose autoscaler adds one for a pod that waits, on the real Kueue and scheduler."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from django.test import Client

from accounts.core.actor import Actor, system_actor
from accounts.models import User
from catalog.checks.queries import check_report
from catalog.classes import actions as catalog
from catalog.classes import queries
from catalog.models import GpuClass, Pool
from cluster.client.kube import Kube
from cluster.models import Cluster
from devcluster.client.kube import Api
from devcluster.controlplane import hardware
from portal.core.due import Deadline
from tenants.models import Namespace, Tenant
from tenants.provisioning import reconcile as tenants
from tenants.provisioning import steps
from tests.support.cluster.worker import Worker
from tests.support.rows import make
from tests.workloads.cases.run_state import is_running, run_of, shown
from workloads.launch import actions
from workloads.launch.types import LaunchSpec
from workloads.status.types import Phase

OWN = "test.example/own-node"
COMING = "No node has this now. A node is added on demand, usually within 7 minutes."
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def elastic(cluster: Cluster, team_a: Tenant, unique: str) -> GpuClass:
    """Counted by the same resource as the A100 class, whose flavor has a topology, in the same queue."""
    found = make.gpu_class(
        cluster,
        slug=f"elastic-{unique}",
        name="Elastic",
        node_labels={OWN: unique},
        tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists"}],
        borrowing_limit=1,
        max_units=4,
        node_minutes=7,
    )
    make.grant(team_a, found, units=2)
    return found


@pytest.fixture
def ready(elastic: GpuClass, provisioned: Tenant, watcher: None) -> GpuClass:
    return elastic


@pytest.fixture
def add_node(admin: Api, elastic: GpuClass, unique: str) -> Iterator[hardware.Json]:
    """The node that an autoscaler would add."""
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    name = f"elastic-{unique}"
    yield hardware.node(name, devices={"nvidia.com/gpu": 4}, labels={OWN: unique}, taints=[taint])
    if admin.find("v1/nodes", name):
        admin.delete("v1/nodes", name)


def borrowing(job: LaunchSpec, gpu_class: GpuClass, *, units: int = 1) -> LaunchSpec:
    options = replace(job.options, checkpoints=True)
    return replace(job, gpu_class=gpu_class.slug, units=units, options=options)


def provisioned_anew(namespace: Namespace, kube: Kube) -> None:
    tenants.reconcile_pool(Pool.objects.get(), Deadline(), kube=kube)
    namespace.refresh_from_db()
    steps.work_on_namespace(namespace, Deadline(), kube=kube)


def test_a_run_is_admitted_without_a_node_and_starts_when_one_comes(
    ready: GpuClass,
    add_node: hardware.Json,
    job: LaunchSpec,
    images: None,
    alice: User,
    by_alice: Actor,
    worker: Worker,
    admin: Api,
    namespace_a: Namespace,
) -> None:
    client = Client()
    client.force_login(alice)
    assert COMING in client.get(f"/catalog/{ready.slug}").text
    # One unit is borrowed: the cohort lends what nodes can be added for.
    actions.launch("team-a", borrowing(job, ready, units=3), by=by_alice)
    # The mirror may know of the admission a moment before the worker has written it down.
    worker(lambda: run_of("train").admitted_at and shown("train").status.reason == "node_coming", within_s=60)
    status = shown("train").status
    assert (status.phase, status.sentence) == (Phase.PREPARING, COMING)
    assert COMING in client.get("/teams/team-a/workloads/train").text

    hardware.add(admin, add_node)
    worker(lambda: is_running("train"), within_s=90)
    [pod] = admin.list("v1/pods", namespace=namespace_a.name)
    assert pod["spec"]["nodeName"] == add_node["metadata"]["name"]


def test_the_launch_form_says_that_a_node_comes(ready: GpuClass, alice: User, images: None) -> None:
    client = Client()
    client.force_login(alice)
    page = client.get(f"/teams/team-a/launch?kind=job&gpu_class={ready.slug}&units=2").text
    assert COMING in page


def test_a_class_whose_nodes_are_added_is_not_reported_as_empty(ready: GpuClass, cluster: Cluster) -> None:
    def reported() -> set[str]:
        findings = check_report(cluster).findings
        assert findings is not None, "unknown, which is not the same as no findings"
        return {one.subject.slug for one in findings if one.code == "class_without_nodes"}

    assert ready.slug not in reported()
    catalog.edit_class(ready.pk, max_units=None, by=system_actor("test"))
    assert ready.slug in reported()


def test_what_was_launched_before_the_autoscaler_says_that_it_has_to_start_again(
    ready: GpuClass, job: LaunchSpec, by_alice: Actor, worker: Worker, kube_worker: Kube, namespace_a: Namespace
) -> None:
    """Its pod asks for a topology, or for none, as its class had it: Kueue compares that with the flavor."""
    catalog.edit_class(ready.pk, max_units=None, by=system_actor("test"))
    provisioned_anew(namespace_a, kube_worker)
    assert queries.has_topology(GpuClass.objects.get(pk=ready.pk))
    actions.launch("team-a", borrowing(job, ready), by=by_alice)

    def is_because(reason: str) -> bool:
        provisioned_anew(namespace_a, kube_worker)
        return shown("train").status.reason == reason

    worker(lambda: is_because("no_node_matches"))
    catalog.edit_class(ready.pk, max_units=4, by=system_actor("test"))
    worker(lambda: is_because("flavor_mismatch"))
