"""Nodes that lose units for a moment or for good: what the cohort lends, and whom the real Kueue preempts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from django.test import Client
from django.utils import timezone

from accounts.core.actor import system_actor
from accounts.models import User
from catalog.classes import actions
from catalog.models import GpuClass, NodeUnits, Pool
from catalog.pool import reconcile as pool_reconcile
from cluster.client.kube import Kube
from cluster.models import Cluster, MirrorEpoch, MirrorKind
from devcluster.client.kube import Api
from devcluster.controlplane import hardware
from portal.core.due import Deadline, Outcome
from tenants.models import Namespace, Tenant
from tenants.provisioning import reconcile, steps
from tests.support.cluster.ended_grants import COHORTS, waits_for
from tests.support.cluster.queued import WORKLOADS, admitted, launch
from tests.support.rows import make, mirrored
from tests.support.waiting import wait_until

OWN = "test.example/own-node"
XE = "gpu.intel.com/xe"
pytestmark = pytest.mark.usefixtures("clean_cluster")


@pytest.fixture
def nodes(unique: str) -> tuple[str, str]:
    return f"xe-{unique}-1", f"xe-{unique}-2"


@pytest.fixture
def xe(cluster: Cluster, nodes: tuple[str, str], unique: str) -> GpuClass:
    """Two nodes with two GPUs each, which only this test uses."""
    return make.gpu_class(
        cluster,
        slug=f"xe-{unique}",
        name="Intel Xe",
        vendor="intel",
        product="",
        resource=XE,
        node_labels={OWN: unique},
        tolerations=[{"key": XE, "operator": "Exists"}],
        borrowing_limit=1,
    )


VERSIONS = itertools.count(2)


def node(name: str, labels: dict[str, str]) -> dict[str, Any]:
    taint = {"key": XE, "value": "present", "effect": "NoSchedule"}
    return hardware.node(name, devices={XE: 2}, labels=labels, taints=[taint])


def newer(raw: dict[str, Any]) -> dict[str, Any]:
    """The watcher ignores what is not newer than what it has seen."""
    return {**raw, "metadata": {**raw["metadata"], "resourceVersion": str(next(VERSIONS))}}


@pytest.fixture
def see(xe: GpuClass, nodes: tuple[str, str]) -> Callable[..., None]:
    """Mirrors the two nodes. Keywords: units that they offer, and what else differs."""

    def see(first: int = 2, second: int = 2, *, spec: dict[str, Any] | None = None, gone: int = 0) -> None:
        found = []
        for name, units in zip(nodes, (first, second), strict=True):
            raw = mirrored.ready(node(name, xe.node_labels))
            raw["status"] = {**raw["status"], "allocatable": {**raw["status"]["allocatable"], XE: str(units)}}
            found.append(newer(raw))
        found[0]["spec"] = {**found[0]["spec"], **(spec or {})}
        mirrored.seen(xe.cluster, Node=found[gone:])

    return see


@pytest.fixture
def lent(xe: GpuClass, kube_worker: Kube, admin: Api) -> Callable[[], int]:
    """Reconciles the pool and returns what the cohort lends."""
    pool = Pool.objects.create(cluster=xe.cluster)

    def lent() -> int:
        look(pool, kube_worker)
        [group] = admin.get(COHORTS, xe.cluster.cohort)["spec"]["resourceGroups"]
        return int(group["flavors"][0]["resources"][0]["nominalQuota"])

    return lent


def look(pool: Pool, kube: Kube) -> Outcome:
    pool.refresh_from_db()
    return reconcile.reconcile_pool(pool, Deadline(), kube=kube)


def pass_time(**since: float) -> None:
    NodeUnits.objects.update(since=F("since") - timedelta(**since))


def test_a_fall_counts_after_its_minutes(
    see: Callable[..., None], lent: Callable[[], int], xe: GpuClass, kube_worker: Kube
) -> None:
    see()
    assert lent() == 4
    see(0)
    assert lent() == 4
    outcome = look(Pool.objects.get(), kube_worker)
    row = NodeUnits.objects.get(reported=0)
    assert outcome.clock == row.since + timedelta(minutes=5), "the pool is reconciled again at that time"
    assert outcome.again_in_s is None
    pass_time(minutes=4, seconds=50)
    assert lent() == 4
    pass_time(seconds=11)
    assert lent() == 2
    see()
    assert lent() == 4, "a rise counts at once"
    actions.edit_class(xe.pk, damping_minutes=0, by=system_actor("test"))
    see(0)
    assert lent() == 2, "a class may have no delay"


@pytest.mark.parametrize(
    ("change", "left"),
    [
        pytest.param({"spec": {"unschedulable": True}}, 2, id="cordoned"),
        pytest.param({"first": 0, "spec": {"unschedulable": True}}, 2, id="cordoned while it offers nothing"),
        pytest.param({"gone": 1}, 2, id="deleted"),
        pytest.param({"first": 0}, 4, id="only fewer units"),
    ],
)
def test_what_an_operator_does_counts_at_once(
    see: Callable[..., None], lent: Callable[[], int], change: dict[str, Any], left: int
) -> None:
    see()
    assert lent() == 4
    see(**change)
    assert lent() == left


def test_what_runs_on_a_cordoned_node_stays_in_the_quota(
    see: Callable[..., None], lent: Callable[[], int], xe: GpuClass, nodes: tuple[str, str], namespace_a: Namespace
) -> None:
    see()
    pod = mirrored.pod("train", node=nodes[0], namespace=namespace_a.name, gpu_class=xe.slug, **{XE: 1})
    mirrored.seen(
        xe.cluster,
        Node=[
            newer({**raw, "spec": {**raw["spec"], "unschedulable": name == nodes[0]}})
            for name in nodes
            for raw in [mirrored.ready(node(name, xe.node_labels))]
        ],
        Pod=[pod],
    )
    assert lent() == 3


def test_a_node_that_lost_its_labels_or_is_not_ready_has_only_lost_them_for_a_moment(
    see: Callable[..., None], lent: Callable[[], int], xe: GpuClass, nodes: tuple[str, str]
) -> None:
    see()
    assert lent() == 4
    bare, down = node(nodes[0], {}), mirrored.with_metadata(node(nodes[1], xe.node_labels))
    mirrored.seen(xe.cluster, Node=[newer(mirrored.ready(bare)), newer(down)])
    assert lent() == 4
    pass_time(minutes=5)
    assert lent() == 0


def test_other_labels_of_the_class_count_at_once(
    see: Callable[..., None], lent: Callable[[], int], xe: GpuClass, nodes: tuple[str, str]
) -> None:
    see()
    assert lent() == 4
    actions.edit_class(xe.pk, node_labels={**xe.node_labels, "test.example/of": "nobody"}, by=system_actor("test"))
    assert lent() == 0


def test_without_news_of_the_cluster_nothing_falls(
    see: Callable[..., None], lent: Callable[[], int], xe: GpuClass, kube_worker: Kube
) -> None:
    see()
    assert lent() == 4
    see(0)
    assert lent() == 4
    long_ago = timezone.now() - timedelta(hours=1)
    MirrorKind.objects.update(heard_at=long_ago)
    MirrorEpoch.objects.update(heard_at=long_ago, beat_at=long_ago)
    pass_time(minutes=6)
    assert lent() == 4
    assert look(Pool.objects.get(), kube_worker).again_in_s == pool_reconcile.SOON_S
    see(0)
    assert lent() == 2


def test_an_emptied_mirror_forgets_no_fall(see: Callable[..., None], lent: Callable[[], int]) -> None:
    see()
    assert lent() == 4
    MirrorEpoch.objects.all().delete()
    MirrorKind.objects.all().delete()
    assert lent() == 4
    see(0)
    assert lent() == 4


def test_pages_and_the_api_show_what_nodes_report_and_say_when_quota_falls(
    see: Callable[..., None], lent: Callable[[], int], xe: GpuClass, nodes: tuple[str, str], alice: User, client: Client
) -> None:
    see()
    lent()
    client.force_login(alice)
    assert client.get(f"/api/v1/classes/{xe.slug}").json()["delayed_falls"] == []
    see(1)
    lent()
    answer = client.get(f"/api/v1/classes/{xe.slug}").json()
    assert (answer["damping_minutes"], answer["capacity"]["allocatable"]) == (5, 3)
    [fall] = answer["delayed_falls"]
    assert (fall["node"], fall["reported"], fall["counted"]) == (nodes[0], 1, 2)
    since, until = (timezone.localtime(timezone.datetime.fromisoformat(fall[name])) for name in ("since", "until"))
    assert until - since == timedelta(minutes=5)
    sentence = f"Node {nodes[0]} reports 1 of 2 GPUs since {since:%H:%M}; quota is reduced at {until:%H:%M}."
    assert fall["message"].startswith(sentence[:60])
    for path in (f"/catalog/{xe.slug}", f"/catalog/{xe.slug}?part=live", "/cluster", "/api/v1/cluster"):
        assert fall["message"] in client.get(path).text
    pass_time(minutes=5)
    lent()
    assert client.get(f"/api/v1/classes/{xe.slug}").json()["delayed_falls"] == []


# ---- with borrowers, on the real Kueue ---------------------------------------------------------------------------


@pytest.fixture
def real_nodes(admin: Api, xe: GpuClass, nodes: tuple[str, str]) -> Iterator[Callable[..., None]]:
    """Adds the nodes to the cluster. Returns a function that changes what one of them offers and mirrors both."""
    for name in nodes:
        hardware.add(admin, node(name, xe.node_labels))

    def mirror() -> list[dict[str, Any]]:
        return [admin.get("v1/nodes", name) for name in nodes]

    def is_ready(raw: dict[str, Any]) -> bool:
        return any(one["type"] == "Ready" and one["status"] == "True" for one in raw["status"].get("conditions", ()))

    def offer(name: str = "", units: int = 2) -> None:
        if name:
            admin.patch_status("v1/nodes", name, {"allocatable": {XE: str(units)}})
        mirrored.seen(xe.cluster, Node=mirror())

    wait_until(lambda: all(map(is_ready, mirror())))
    offer()
    yield offer
    for name in nodes:
        admin.delete("v1/nodes", name)


@pytest.mark.parametrize(("minutes", "is_preempted"), [(5, False), (0, True)])
def test_a_plugin_that_restarts_preempts_nobody(
    real_nodes: Callable[..., None],
    look: Callable[[], Outcome],
    team_a: Tenant,
    xe: GpuClass,
    namespace_a: Namespace,
    unique: str,
    kube_worker: Kube,
    admin: Api,
    minutes: int,
    is_preempted: bool,
) -> None:
    """Team A uses two of its three units on one node, team B borrows one on the other. The plugin of A's node restarts,
    and A launches on the unit that is free: without a delay, Kueue takes it from B.
    """
    namespace_b = make.tenant(xe.cluster, slug="team-b", namespace=f"team-b-{unique}").namespaces.get()
    actions.edit_class(xe.pk, damping_minutes=minutes, by=system_actor("test"))
    make.grant(team_a, xe, units=3)
    look()
    steps.work_on_namespace(namespace_b, Deadline(), kube=kube_worker)
    launch(kube_worker, xe, namespace_a, name="two", units=2)
    wait_until(lambda: look() and "two-1" in admitted(admin, namespace_a))
    launch(kube_worker, xe, namespace_b, name="borrows")
    wait_until(lambda: "borrows-1" in admitted(admin, namespace_b))
    restarting = wait_until(lambda: where(admin, namespace_a, "two-1"))

    real_nodes(restarting, 0)
    look()
    launch(kube_worker, xe, namespace_a, name="third")
    wait_until(
        lambda: "third-1" in admitted(admin, namespace_a), story=lambda: waits_for(admin, namespace_a, "third-1")
    )
    pass_time(seconds=60)
    look()
    # Before the units are back: what was preempted is then admitted again.
    assert ("borrows-1" in admitted(admin, namespace_b)) == (not is_preempted)
    real_nodes(restarting, 2)
    look()
    assert preempted(admin, namespace_b) == is_preempted
    assert not preempted(admin, namespace_a)


def where(admin: Api, namespace: Namespace, job: str) -> str:
    pods = admin.list("v1/pods", namespace=namespace.name)
    found = [one["spec"].get("nodeName", "") for one in pods if one["metadata"]["name"].startswith(job)]
    return found[0] if found else ""


def preempted(admin: Api, namespace: Namespace) -> bool:
    workloads = admin.list(WORKLOADS, namespace=namespace.name)
    return any(one["type"] == "Preempted" for found in workloads for one in found["status"].get("conditions", ()))
