"""A grant ends while its jobs run and other teams wait for the same GPUs, with the real Kueue."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from django.utils import timezone

from catalog.classes import queries
from catalog.models import GpuClass, Pool
from cluster.client.kube import Kube
from cluster.models import Cluster
from devcluster.client.kube import Api
from devcluster.controlplane import hardware
from portal.core.due import Deadline, Outcome
from tenants.grants import queries as grant_queries
from tenants.models import Namespace, Tenant
from tenants.provisioning import reconcile, steps
from tests.support.cluster.ended_grants import COHORTS, end, kept, waits_for
from tests.support.cluster.queued import admitted, launch
from tests.support.rows import make, mirrored
from tests.support.waiting import wait_until

OWN = "test.example/own-node"
QUEUES = "kueue.x-k8s.io/v1beta2/clusterqueues"
pytestmark = pytest.mark.usefixtures("clean_cluster")


@pytest.fixture
def namespace_b(cluster: Cluster, unique: str) -> Namespace:
    return make.tenant(cluster, slug="team-b", namespace=f"team-b-{unique}").namespaces.get()


@pytest.fixture
def xe(cluster: Cluster, admin: Api, unique: str) -> Iterator[GpuClass]:
    """The four GPUs of a node that only this test uses: no other test's pods run there or are still terminating."""
    labels = {OWN: unique}
    taint = {"key": "gpu.intel.com/xe", "value": "present", "effect": "NoSchedule"}
    node = hardware.node(f"xe-{unique}", devices={"gpu.intel.com/xe": 4}, labels=labels, taints=[taint])
    hardware.add(admin, node)
    yield make.gpu_class(
        cluster,
        slug=f"xe-{unique}",
        name="Intel Xe",
        vendor="intel",
        product="",
        resource="gpu.intel.com/xe",
        node_labels=labels,
        tolerations=[{"key": "gpu.intel.com/xe", "operator": "Exists"}],
    )
    admin.delete("v1/nodes", f"xe-{unique}")


def test_what_runs_at_the_end_of_a_grant_stays_until_its_grace_is_over_and_nothing_new_starts(
    look: Callable[[], Outcome],
    team_a: Tenant,
    xe: GpuClass,
    namespace_a: Namespace,
    namespace_b: Namespace,
    kube_worker: Kube,
    admin: Api,
) -> None:
    """Team A holds all four GPUs of the node; from the end of its grant they belong to team B."""
    grant = make.grant(team_a, xe, units=4)
    look()
    for name in ("one", "two", "three", "four", "waits"):
        launch(kube_worker, xe, namespace_a, name=name)
    wait_until(lambda: look() and len(admitted(admin, namespace_a)) == 4)
    running = set(admitted(admin, namespace_a))

    end(grant)
    make.grant(namespace_b.tenant, xe, units=4)
    wait_until(lambda: look().again_in_s == reconcile.FLAVOR_RETRY_S)
    steps.work_on_namespace(namespace_b, Deadline(), kube=kube_worker)
    launch(kube_worker, xe, namespace_b, name="first")
    wait_until(lambda: "topology" in waits_for(admin, namespace_b, "first-1"))
    assert set(admitted(admin, namespace_a)) == running, "the neighbour waits and takes nothing"
    assert kept(admin, namespace_a) == "4"

    gone, *left = sorted(running)
    admin.delete("batch/v1/jobs", gone, namespace=namespace_a.name)
    wait_until(lambda: set(admitted(admin, namespace_b)) == {"first-1"})
    assert set(admitted(admin, namespace_a)) == set(left), "what ended made room for the neighbour, not for what waits"
    wait_until(lambda: look() and kept(admin, namespace_a) == "3")

    launch(kube_worker, xe, namespace_b, name="second")
    wait_until(lambda: "topology" in waits_for(admin, namespace_b, "second-1"))
    assert set(admitted(admin, namespace_a)) == set(left)
    end(grant, ago=grant.grace)
    wait_until(lambda: look() and kept(admin, namespace_a) is None)
    wait_until(lambda: set(admitted(admin, namespace_b)) == {"first-1", "second-1"})
    assert set(admitted(admin, namespace_a)) < set(left)


def test_who_takes_units_back_takes_them_from_who_borrowed_and_not_from_a_grace(
    look: Callable[[], Outcome],
    team_a: Tenant,
    a100: GpuClass,
    namespace_a: Namespace,
    namespace_b: Namespace,
    unique: str,
    kube_worker: Kube,
    admin: Api,
) -> None:
    """Team C borrowed team B's unused units before team A's job began: of two borrowers, the later one is preempted."""
    GpuClass.objects.filter(pk=a100.pk).update(borrowing_limit=1)
    namespace_c = make.tenant(a100.cluster, slug="team-c", namespace=f"team-c-{unique}").namespaces.get()
    grant = make.grant(team_a, a100, units=1)
    make.grant(namespace_b.tenant, a100, units=1)
    look()
    for neighbour in (namespace_b, namespace_c):
        steps.work_on_namespace(neighbour, Deadline(), kube=kube_worker)
    launch(kube_worker, a100, namespace_c, name="lent", units=1)
    wait_until(lambda: look() and "lent-1" in admitted(admin, namespace_c))
    launch(kube_worker, a100, namespace_a, name="train", units=1)
    wait_until(lambda: look() and "train-1" in admitted(admin, namespace_a))
    end(grant)
    wait_until(lambda: look() and kept(admin, namespace_a) == "1")
    launch(kube_worker, a100, namespace_b, name="own", units=1)
    wait_until(lambda: "own-1" in admitted(admin, namespace_b), story=lambda: waits_for(admin, namespace_b, "own-1"))
    assert admitted(admin, namespace_c) == {}
    assert "train-1" in admitted(admin, namespace_a)


def test_the_end_of_the_grace_is_the_next_look(look: Callable[[], Outcome], team_a: Tenant, a100: GpuClass) -> None:
    grant = make.grant(team_a, a100, units=2)
    assert look().clock == grant.period.upper
    end(grant, ago=timedelta(hours=1))
    grant.refresh_from_db()
    assert look().clock == grant.period.upper + timedelta(hours=24)
    end(grant, ago=timedelta(hours=25))
    assert look().clock is None


def test_other_classes_of_the_team_start_as_before_during_a_grace(
    look: Callable[[], Outcome],
    team_a: Tenant,
    a100: GpuClass,
    namespace_a: Namespace,
    unique: str,
    kube_worker: Kube,
    admin: Api,
) -> None:
    """During a grace its queue is in a cohort of its own; its quota there and its borrowing limit stay the same."""
    mirrored.hardware_seen(a100.cluster)
    labels = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-SHARED", "nvidia.com/gpu.sharing-strategy": "mps"}
    mps = make.gpu_class(
        a100.cluster,
        slug=f"mps-{unique}",
        product=labels["nvidia.com/gpu.product"],
        node_labels=labels,
        borrowing_limit=1,
    )
    grant = make.grant(team_a, a100, units=2)
    make.grant(team_a, mps, units=1)
    look()
    launch(kube_worker, a100, namespace_a, name="train")
    wait_until(
        lambda: look() and "train-1" in admitted(admin, namespace_a),
        story=lambda: waits_for(admin, namespace_a, "train-1"),
    )
    end(grant)
    wait_until(lambda: look() and kept(admin, namespace_a) == "1")
    for name in ("own", "borrowed"):
        launch(kube_worker, mps, namespace_a, name=name)
    wait_until(lambda: len(admitted(admin, namespace_a)) == 3)
    # Only then: of three that are created within a second, Kueue takes any two.
    launch(kube_worker, mps, namespace_a, name="beyond")
    wait_until(lambda: "insufficient" in waits_for(admin, namespace_a, "beyond-1"))
    assert {"train-1", "own-1", "borrowed-1"} == set(admitted(admin, namespace_a))


def test_what_is_kept_in_a_grace_is_not_lent_as_well(
    team_a: Tenant, a100: GpuClass, namespace_a: Namespace, kube_worker: Kube, admin: Api
) -> None:
    """Unknown use counts as the whole grant; known use counts as measured, up to what was granted."""
    cluster = a100.cluster
    pool = Pool.objects.create(cluster=cluster)
    grant = make.grant(team_a, a100, units=6)
    end(grant)
    assert grant_queries.unlendable_units(cluster, timezone.now()) == {a100.pk: 6}
    mirrored.hardware_seen(cluster)

    def lent() -> str:
        reconcile.reconcile_pool(pool, Deadline(), kube=kube_worker)
        [group] = admin.get(COHORTS, cluster.cohort)["spec"]["resourceGroups"]
        [flavor] = group["flavors"]
        assert flavor["name"] == queries.flavor_name(a100)
        return str(flavor["resources"][0]["nominalQuota"])

    assert lent() == "16"
    pods = [
        mirrored.pod(
            f"train-{node}", node=node, namespace=namespace_a.name, gpu_class=a100.slug, **{"nvidia.com/gpu": 4}
        )
        for node in ("a100-1", "a100-2")
    ]
    mirrored.hardware_seen(cluster, Pod=pods[:1])
    assert lent() == "12"
    mirrored.hardware_seen(cluster, Pod=pods)
    assert lent() == "10", "two of the eight were borrowed"
    end(grant, ago=timedelta(hours=25))
    assert lent() == "16"
