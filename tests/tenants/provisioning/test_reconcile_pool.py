"""Flavors and the cohort on the real API server, including Kueue's webhooks."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.core.actor import system_actor
from catalog.classes import actions, queries
from catalog.models import GpuClass, Pool
from cluster.client.kube import Kube
from cluster.models import AppliedObject, Cluster, MirrorEpoch, MirrorWorkload
from devcluster.client.kube import Api
from portal.core.due import Deadline, Outcome
from tenants.models import Namespace, Tenant
from tenants.provisioning import reconcile
from tests.support.rows import make, mirrored
from tests.support.waiting import wait_until

FLAVORS = "kueue.x-k8s.io/v1beta2/resourceflavors"
COHORTS = "kueue.x-k8s.io/v1beta2/cohorts"
pytestmark = pytest.mark.usefixtures("clean_cluster")


@pytest.fixture
def pool(a100: GpuClass) -> Pool:
    return Pool.objects.create(cluster=a100.cluster)


def look(pool: Pool, kube: Kube) -> Outcome:
    pool.refresh_from_db()
    return reconcile.reconcile_pool(pool, Deadline(), kube=kube)


def lent(admin: Api, cluster: Cluster) -> dict[str, str]:
    """Flavor → what the cohort lends of it."""
    groups = admin.get(COHORTS, cluster.cohort)["spec"].get("resourceGroups", [])
    return {flavor["name"]: flavor["resources"][0]["nominalQuota"] for group in groups for flavor in group["flavors"]}


def test_what_nobody_was_promised_is_lent_to_everybody(
    pool: Pool, a100: GpuClass, team_a: Tenant, kube_worker: Kube, admin: Api
) -> None:
    mirrored.hardware_seen(a100.cluster)
    make.grant(team_a, a100, units=6)
    look(pool, kube_worker)
    flavor = queries.flavor_name(a100)
    assert lent(admin, a100.cluster) == {flavor: "10"}
    spec = admin.get(FLAVORS, flavor)["spec"]
    assert spec["nodeLabels"] == a100.node_labels
    assert spec["nodeTaints"] == [{"key": "gpu-portal/class", "value": a100.slug, "effect": "NoSchedule"}]
    assert spec["topologyName"] == "gpu-portal"


def test_more_promised_than_there_is_lends_nothing_and_is_not_negative(
    pool: Pool, a100: GpuClass, team_a: Tenant, kube_worker: Kube, admin: Api
) -> None:
    mirrored.hardware_seen(a100.cluster)
    make.grant(team_a, a100, units=20)
    look(pool, kube_worker)
    assert set(lent(admin, a100.cluster).values()) == {"0"}


def test_while_capacity_is_unknown_nothing_is_lent(pool: Pool, a100: GpuClass, kube_worker: Kube, admin: Api) -> None:
    look(pool, kube_worker)
    assert set(lent(admin, a100.cluster).values()) == {"0"}


def test_an_empty_mirror_takes_back_nothing_that_is_lent(
    pool: Pool, a100: GpuClass, kube_worker: Kube, admin: Api
) -> None:
    """PostgreSQL lost its unlogged tables: capacity is unknown for a moment, and borrowers must not lose units."""
    mirrored.hardware_seen(a100.cluster)
    look(pool, kube_worker)
    MirrorEpoch.objects.all().delete()
    assert look(pool, kube_worker).again_in_s is not None
    assert lent(admin, a100.cluster) == {queries.flavor_name(a100): "16"}


def test_a_grant_that_ends_later_is_the_pools_clock(
    pool: Pool, a100: GpuClass, team_a: Tenant, kube_worker: Kube
) -> None:
    end = timezone.now() + timedelta(days=3)
    make.grant(team_a, a100, units=2, until=end)
    assert look(pool, kube_worker).clock == end


def test_a_second_look_sends_nothing(pool: Pool, a100: GpuClass, kube_worker: Kube) -> None:
    mirrored.hardware_seen(a100.cluster)
    look(pool, kube_worker)
    sent = dict(AppliedObject.objects.values_list("pk", "sent_at"))
    look(pool, kube_worker)
    assert dict(AppliedObject.objects.values_list("pk", "sent_at")) == sent
    assert len(sent) == 2


def test_relabelled_nodes_are_a_new_flavor_and_the_old_one_stays_while_it_is_used(
    pool: Pool, a100: GpuClass, kube_worker: Kube, admin: Api
) -> None:
    before = queries.flavor_name(a100)
    mirrored.hardware_seen(a100.cluster, Workload=[admitted("one", flavor=before)])
    look(pool, kube_worker)
    actions.edit_class(
        a100.pk, node_labels={"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}, by=system_actor("test")
    )
    a100.refresh_from_db()
    after = queries.flavor_name(a100)
    assert look(pool, kube_worker).again_in_s is not None
    assert admin.find(FLAVORS, before)
    assert admin.find(FLAVORS, after)
    assert set(lent(admin, a100.cluster)) == {after}

    finish_all()
    assert look(pool, kube_worker).again_in_s is None
    # Kueue removes its finalizer after it has seen that no queue names the flavor.
    wait_until(lambda: admin.find(FLAVORS, before) is None)


def test_an_unwanted_flavor_stays_while_nobody_knows_what_runs(
    pool: Pool, a100: GpuClass, kube_worker: Kube, admin: Api
) -> None:
    look(pool, kube_worker)
    GpuClass.objects.filter(pk=a100.pk).update(life_cycle=GpuClass.LifeCycle.RETIRED)
    look(pool, kube_worker)
    assert admin.find(FLAVORS, queries.flavor_name(a100))


def test_new_flavors_and_edited_classes_wake_the_queues(
    pool: Pool, a100: GpuClass, namespace_a: Namespace, kube_worker: Kube
) -> None:
    look(pool, kube_worker)
    namespace_a.refresh_from_db()
    assert namespace_a.due_at is not None
    Namespace.objects.update(due_at=None)
    Pool.objects.update(observed_generation=pool.generation)
    look(pool, kube_worker)
    namespace_a.refresh_from_db()
    assert namespace_a.due_at is None

    actions.edit_class(a100.pk, borrowing_limit=2, by=system_actor("test"))
    look(pool, kube_worker)
    namespace_a.refresh_from_db()
    assert namespace_a.due_at is not None


def test_a_dra_class_has_a_plain_flavor(pool: Pool, a100: GpuClass, unique: str, kube_worker: Kube, admin: Api) -> None:
    h100 = make.gpu_class(
        a100.cluster,
        slug=f"h100-{unique}",
        interface="dra",
        resource="dra.portal/h100",
        device_class="gpu.nvidia.com",
        device_selector='device.attributes["gpu.nvidia.com"].productName == "NVIDIA H100 80GB HBM3"',
        node_labels={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
    )
    mirrored.hardware_seen(a100.cluster)
    look(pool, kube_worker)
    assert "topologyName" not in admin.get(FLAVORS, queries.flavor_name(h100))["spec"]
    assert lent(admin, a100.cluster)[queries.flavor_name(h100)] == "8"


def test_a_topology_of_the_site_is_in_a_new_flavor(
    pool: Pool, a100: GpuClass, kube_worker: Kube, admin: Api, unique: str
) -> None:
    """The fence lets the worker name it."""
    name, labels = f"gpu-portal-{unique}", ("nvidia.com/gpu.product", "kubernetes.io/hostname")
    spec = {"levels": [{"nodeLabel": label} for label in labels]}
    topology = mirrored.with_metadata({"metadata": {"name": name}, "spec": spec})
    mirrored.hardware_seen(a100.cluster, Topology=[topology], Workload=[])
    look(pool, kube_worker)
    before = queries.flavor_name(a100)
    changed = actions.edit_class(a100.pk, topology=name, by=system_actor("test"))
    look(pool, kube_worker)
    after = queries.flavor_name(changed)
    assert admin.get(FLAVORS, after)["spec"]["topologyName"] == name
    assert set(lent(admin, a100.cluster)) == {after}
    wait_until(lambda: admin.find(FLAVORS, before) is None)


def finish_all() -> None:
    for row in MirrorWorkload.objects.all():
        row.record["conditions"] = [
            {"type": "Finished", "status": "True", "reason": "Succeeded", "message": "", "since": None}
        ]
        row.save()


def admitted(name: str, *, flavor: str) -> dict[str, Any]:
    """A Kueue Workload that holds quota of this flavor."""
    usage = {"nvidia.com/gpu": "1"}
    assignment = {"name": "main", "count": 1, "flavors": {"nvidia.com/gpu": flavor}, "resourceUsage": usage}
    return mirrored.with_metadata(
        {
            "metadata": {"name": name, "namespace": "team-a", "labels": {"app.kubernetes.io/managed-by": "gpu-portal"}},
            "spec": {"queueName": "gpu-portal"},
            "status": {"admission": {"clusterQueue": "team-a", "podSetAssignments": [assignment]}},
        }
    )
