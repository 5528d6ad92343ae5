"""A node that is being removed: its runs are told once, and what ends them is named by its notice."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.core.actor import system_actor
from accounts.events.actions import record
from accounts.models import Delivery, Event, User
from catalog.models import GpuClass
from cluster.mirror.records.kinds import KINDS
from cluster.mirror.watch import NoteType, WatchNote
from cluster.mirror.writer import MirrorWriter
from cluster.models import Cluster, MirrorNews, MirrorNode, MirrorPod, PodRemoval
from cluster.reads import queries as mirror
from portal.core.due import owner_label
from tenants.models import Namespace, Tenant
from tests.support.rows import make, mirrored, running
from tests.support.rows.interruptions import asked, condition, follow, queue_says, seen
from workloads.core import queries as core_queries
from workloads.core import workload_sql
from workloads.interruption import preemption
from workloads.models import Run, Workload
from workloads.runs import interruption_notices
from workloads.status import queries as status_queries

pytestmark = pytest.mark.django_db
AWS = "aws-node-termination-handler/spot-itn"
KARPENTER = "karpenter.sh/disrupted"


@pytest.fixture
def run(team_a: Tenant, namespace_a: Namespace, cluster: Cluster, a100: GpuClass, alice: User) -> Run:
    """A job that runs."""
    mirrored.hardware_seen(cluster)
    make.grant(team_a, a100, units=4)
    found = asked(namespace_a, a100, alice)
    queue_says(found, condition("QuotaReserved", "True"), condition("Admitted", "True"), preemptions=0)
    MirrorPod.objects.all().delete()
    running.pod_of(found.workload, uid="first")
    return found


def node_of(run: Run) -> MirrorNode:
    return MirrorNode.objects.get(name=MirrorPod.objects.get(owner=owner_label(run.workload)).node)


def taint(node: MirrorNode, *keys: str) -> None:
    node.record = {**node.record, "taints": [{"key": key, "value": "", "effect": "NoSchedule"} for key in keys]}
    node.save()


def told() -> list[tuple[str, str]]:
    return [(one.verb, one.after.get("reason", "")) for one in Event.objects.order_by("pk") if "node" in one.verb]


def sentence(run: Run) -> str:
    rows = status_queries.workload_rows(workload_sql.with_related(Workload.objects.filter(pk=run.workload_id)))
    return rows[0].status.sentence


def removed(run: Run, node: str, why: str) -> None:
    """The pod of the run was removed from the node and is gone."""
    at = timezone.now().replace(microsecond=0) - timedelta(seconds=20)
    workload = run.workload
    PodRemoval.objects.create(
        cluster_id=workload.namespace.cluster_id, namespace=workload.namespace.name, uid="first",
        owner=owner_label(workload), run=core_queries.job_name(workload, run), node=node, phase="Failed",
        reason="", message="", disruption=why, disruption_message="", disrupted_at=at,
        ran_since=at - timedelta(minutes=5),
    )  # fmt: skip
    MirrorPod.objects.all().delete()
    running.pod_of(workload, uid="second")


def look_late(run: Run) -> bool:
    workload = run.workload
    mine = {"owner": owner_label(workload), "namespace": workload.namespace.name}
    name = core_queries.job_name(workload, run)
    gone = tuple(mirror.removed_pods(workload.namespace.cluster_id, **mine, run=name))
    return interruption_notices.record_preemptions(Run.objects.get(pk=run.pk), replace(seen(run), removed=gone))


def cause() -> str:
    return str(Event.objects.get(verb="workload.interrupted").after["reason"])


def test_a_notice_is_told_once_on_the_page_and_by_mail(run: Run, alice: User) -> None:
    node = node_of(run)
    taint(node, "nvidia.com/gpu")
    assert not follow(run)
    assert "being removed" not in sentence(run)

    taint(node, "nvidia.com/gpu", AWS)
    assert follow(run)
    assert not follow(run), "it was told"
    event = Event.objects.get(verb="workload.node_leaving")
    assert (event.after["node"], event.after["reason"], event.after["run"]) == (node.name, "spot_reclaimed", 1)
    assert not Event.objects.filter(verb="workload.interrupted").exists(), "nothing has happened yet"
    mail = Delivery.objects.get()
    assert mail.user == alice
    assert mail.subject == "The node of train of Team A is being removed"
    expected = f"Node {node.name} is being removed: AWS reclaims the spot node about two minutes after its notice."
    assert expected in mail.body
    assert "SIGTERM" in mail.body
    assert "no checkpointing is declared" in mail.body
    assert expected in sentence(run)


def test_a_stopping_run_is_not_told(run: Run) -> None:
    taint(node_of(run), AWS)
    Run.objects.update(stop_requested_at=timezone.now())
    assert not follow(run)
    assert told() == []


@pytest.mark.parametrize(
    ("why", "key", "expected"),
    [
        ("EvictionByEvictionAPI", AWS, "spot_reclaimed"),
        ("EvictionByEvictionAPI", KARPENTER, "removed_by_karpenter"),
        ("DeletionByPodGC", KARPENTER, "removed_by_karpenter"),
        ("EvictionByEvictionAPI", "nvidia.com/gpu", "drained"),
        # The scheduler, not the removal of the node.
        ("PreemptionByScheduler", AWS, "preempted_on_node"),
    ],
)
@pytest.mark.parametrize("is_told", [True, False])
def test_the_cause_is_that_of_the_node_while_it_is_there(
    run: Run, why: str, key: str, expected: str, is_told: bool
) -> None:
    node = node_of(run)
    taint(node, key)
    if is_told:
        follow(run)
    removed(run, node.name, why)
    assert look_late(run)
    assert cause() == expected
    assert expected in preemption.CAUSES


def cordon(node: MirrorNode, *taints: str) -> None:
    taint(node, *taints)
    node.schedulable, node.record = False, {**node.record, "cordon": {"manager": "kubectl", "at": ""}}
    node.save()


@pytest.mark.parametrize(
    ("why", "taints", "expected"),
    [
        ("EvictionByEvictionAPI", (), "moved_by_drain"),
        # The portal drains it itself, and not by evictions.
        ("EvictionByEvictionAPI", ("gpu-portal/maintenance",), "drained"),
        ("EvictionByEvictionAPI", (KARPENTER,), "removed_by_karpenter"),
        ("DeletionByTaintManager", (), "drained"),
        ("DeletionByPodGC", (), "node_lost"),
        ("PreemptionByScheduler", (), "preempted_on_node"),
    ],
)
def test_an_eviction_from_a_cordoned_node_is_a_drain(
    run: Run, why: str, taints: tuple[str, ...], expected: str
) -> None:
    node = node_of(run)
    cordon(node, *taints)
    removed(run, node.name, why)
    assert look_late(run)
    assert cause() == expected


@pytest.mark.parametrize(("is_told", "expected"), [(True, "moved_by_drain"), (False, "drained")])
def test_of_a_node_that_is_gone_the_told_cordon_counts(run: Run, is_told: bool, expected: str) -> None:
    """As in an upgrade of nodes: cordon, drain, delete."""
    node = node_of(run)
    if is_told:
        after = {"run": run.number, "node": node.name}
        record(system_actor("rule interruptions"), "workload.node_cordoned", run.workload, after=after)
    removed(run, node.name, "EvictionByEvictionAPI")
    node.delete()
    assert look_late(run)
    assert cause() == expected
    assert ("it was moved off its node by a drain" in Delivery.objects.get().body) is is_told


def test_of_a_node_that_is_gone_the_notice_counts(run: Run) -> None:
    node = node_of(run)
    taint(node, KARPENTER)
    assert follow(run)
    removed(run, node.name, "DeletionByPodGC")
    node.delete()
    assert look_late(run)
    assert cause() == "removed_by_karpenter"
    assert "its node was removed by Karpenter" in Delivery.objects.order_by("pk").last().body  # type: ignore[union-attr]


def test_of_a_node_that_is_gone_without_a_notice_nothing_is_guessed(run: Run) -> None:
    node = node_of(run)
    removed(run, node.name, "DeletionByPodGC")
    node.delete()
    assert look_late(run)
    assert cause() == "node_lost"


def test_a_notice_that_was_withdrawn_is_no_cause(run: Run) -> None:
    node = node_of(run)
    taint(node, "ToBeDeletedByClusterAutoscaler")
    assert follow(run)
    taint(node)
    removed(run, node.name, "EvictionByEvictionAPI")
    assert look_late(run)
    assert cause() == "drained"


@pytest.mark.parametrize(("key", "wakes"), [(AWS, True), ("example.org/other", False)])
def test_the_mirror_wakes_the_runs_of_a_node_that_is_being_removed(
    run: Run, cluster: Cluster, key: str, wakes: bool
) -> None:
    name = node_of(run).name
    raw: Any = {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "uid": node_of(run).uid, "resourceVersion": "9"},
        "spec": {"taints": [{"key": key, "effect": "NoSchedule"}]}, "status": {},
    }  # fmt: skip
    MirrorNews.objects.all().delete()
    writer = MirrorWriter(cluster.pk)
    writer.open()
    writer.write([(WatchNote(KINDS["Node"], NoteType.SEEN, "9"), KINDS["Node"].seen(raw))])
    assert MirrorNews.objects.filter(owner=owner_label(run.workload)).exists() is wakes
