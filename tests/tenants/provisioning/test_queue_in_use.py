"""Quota that changes while workloads run on it, with the real Kueue: no usage is hidden and no run is lost."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.utils import timezone

from accounts.core.actor import system_actor
from catalog.classes import actions, queries
from catalog.classes.proposals import actions as proposal_actions
from catalog.discovery import queries as discovery_queries
from catalog.models import GpuClass
from cluster.apply.reconcile import create_once
from cluster.client.kube import Kube
from cluster.manifests import run as manifests
from cluster.manifests.namespace import PLAIN_RESOURCE_GROUP
from devcluster.client.kube import Api
from portal.core.due import DONE, Outcome
from tenants.models import Grant, Namespace, Tenant
from tests.support.cluster.queued import WORKLOADS, admitted, launch, spec
from tests.support.rows import make, mirrored
from tests.support.waiting import wait_until

QUEUES = "kueue.x-k8s.io/v1beta2/clusterqueues"
pytestmark = pytest.mark.usefixtures("clean_cluster")


def reserved(admin: Api, namespace: Namespace) -> int:
    flavors = admin.get(QUEUES, namespace.name).get("status", {}).get("flavorsReservation", [])
    return sum(int(resource["total"]) for flavor in flavors for resource in flavor["resources"])


def cells(admin: Api, namespace: Namespace) -> dict[str, str]:
    """Flavor → nominal quota, of classes."""
    groups = admin.get(QUEUES, namespace.name)["spec"]["resourceGroups"]
    groups = [group for group in groups if group != PLAIN_RESOURCE_GROUP]
    return {flavor["name"]: flavor["resources"][0]["nominalQuota"] for group in groups for flavor in group["flavors"]}


def end_now(grant: Grant) -> None:
    Grant.objects.filter(pk=grant.pk).update(period=DateTimeTZRange(grant.period.lower, timezone.now()))


def test_a_flavor_in_use_stays_in_the_queue_until_its_last_job_is_gone(
    look: Callable[[], Outcome], team_a: Tenant, a100: GpuClass, namespace_a: Namespace, kube_worker: Kube, admin: Api
) -> None:
    grant = make.grant(team_a, a100, units=2)
    look()
    launch(kube_worker, a100, namespace_a, name="train")
    flavor = queries.flavor_name(a100)
    wait_until(lambda: admitted(admin, namespace_a) == {"train-1": {"nvidia.com/gpu": flavor}})
    wait_until(lambda: reserved(admin, namespace_a) == 1)

    end_now(grant)
    look()
    assert cells(admin, namespace_a) == {flavor: "0"}
    quota = admin.get("v1/resourcequotas", "gpu-portal", namespace=namespace_a.name)["spec"]["hard"]
    assert quota["requests.nvidia.com/gpu"] == "2"
    assert admitted(admin, namespace_a) == {"train-1": {"nvidia.com/gpu": flavor}}

    admin.delete("batch/v1/jobs", "train-1", namespace=namespace_a.name)
    wait_until(lambda: reserved(admin, namespace_a) == 0)
    look()
    assert cells(admin, namespace_a) == {}


def test_relabelled_nodes_get_a_new_flavor_while_the_old_one_is_in_use(
    look: Callable[[], Outcome], team_a: Tenant, a100: GpuClass, namespace_a: Namespace, kube_worker: Kube, admin: Api
) -> None:
    make.grant(team_a, a100, units=2)
    look()
    launch(kube_worker, a100, namespace_a, name="train")
    before = queries.flavor_name(a100)
    wait_until(lambda: reserved(admin, namespace_a) == 1)
    actions.edit_class(
        a100.pk, node_labels={**a100.node_labels, "nvidia.com/mig.strategy": "mixed"}, by=system_actor("test")
    )
    a100.refresh_from_db()
    look()
    assert cells(admin, namespace_a) == {before: "1", queries.flavor_name(a100): "1"}


@pytest.mark.timeout(240)
@pytest.mark.usefixtures("whole_hardware")
def test_every_class_of_the_catalog_is_admitted_on_its_own_flavor_side_by_side(
    look: Callable[[], Outcome],
    team_a: Tenant,
    a100: GpuClass,
    namespace_a: Namespace,
    unique: str,
    kube_worker: Kube,
    admin: Api,
) -> None:
    """Whole GPUs, shared GPUs under the same resource name, MIG slices, DRA, other vendors and no GPU at all."""
    GpuClass.objects.all().delete()
    mirrored.hardware_seen(a100.cluster)
    found = discovery_queries.discover_cluster(a100.cluster)
    assert found is not None
    for proposal in found.proposals:
        made = actions.create_class(
            slug=f"{proposal.slug[:28]}-{unique}", by=system_actor("test"), **proposal_actions.class_values(proposal)
        )
        actions.activate(made.pk, by=system_actor("test"))
    classes = list(GpuClass.objects.order_by("pk"))
    for gpu_class in classes:
        make.grant(team_a, gpu_class, units=1)
    look()
    assert admin.get(QUEUES, namespace_a.name)["spec"]["stopPolicy"] == "None"
    for number, gpu_class in enumerate(classes):
        launch(kube_worker, gpu_class, namespace_a, name=f"job{number}")
    expected = {
        f"job{number}-1": {gpu_class.resource: queries.flavor_name(gpu_class)} if gpu_class.resource else {}
        for number, gpu_class in enumerate(classes)
    }
    wait_until(lambda: len(admitted(admin, namespace_a)) == len(classes), story=lambda: str(why(admin, namespace_a)))
    assert admitted(admin, namespace_a) == expected


def test_closing_ends_what_runs_and_leaves_nothing(
    look: Callable[[], Outcome], team_a: Tenant, a100: GpuClass, namespace_a: Namespace, kube_worker: Kube, admin: Api
) -> None:
    make.grant(team_a, a100, units=2)
    look()
    job = manifests.job(spec(a100, namespace_a, name="train"))
    create_once(kube=kube_worker, cluster_id=a100.cluster_id, owner="workloads.workload.1", manifest=job)
    wait_until(lambda: reserved(admin, namespace_a) == 1)
    make.close(namespace_a.name)

    wait_until(lambda: look() == DONE, within_s=60, every_s=0.5)
    assert admin.find("v1/namespaces", namespace_a.name) is None
    assert admin.find(QUEUES, namespace_a.name) is None


def test_a_lowered_quota_keeps_what_runs_and_the_fuse_above_it(
    look: Callable[[], Outcome], team_a: Tenant, a100: GpuClass, namespace_a: Namespace, kube_worker: Kube, admin: Api
) -> None:
    grant = make.grant(team_a, a100, units=3)
    look()
    launch(kube_worker, a100, namespace_a, name="train", units=3)
    wait_until(lambda: reserved(admin, namespace_a) == 3)
    end_now(grant)
    make.grant(team_a, a100, units=1, since=timezone.now(), until=timezone.now() + timedelta(days=1))
    look()
    assert cells(admin, namespace_a) == {queries.flavor_name(a100): "1"}
    hard = admin.get("v1/resourcequotas", "gpu-portal", namespace=namespace_a.name)["spec"]["hard"]
    assert hard["requests.nvidia.com/gpu"] == "6"
    assert reserved(admin, namespace_a) == 3


def why(admin: Api, namespace: Namespace) -> list[Any]:
    """Returns what Kueue reports about the workloads that wait."""
    return [
        (workload["metadata"]["name"], [one["message"] for one in workload.get("status", {}).get("conditions", [])])
        for workload in admin.list(WORKLOADS, namespace=namespace.name)
        if not workload.get("status", {}).get("admission")
    ] + [job["metadata"]["name"] for job in admin.list("batch/v1/jobs", namespace=namespace.name)]
