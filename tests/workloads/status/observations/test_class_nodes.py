"""Why no node of its class accepts a run: from the capacity of each node, and what of it the mirror provides."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import User
from catalog.models import GpuClass
from cluster.manifests.node_removal.cordons import Cordon
from cluster.models import Cluster, MirrorNode, MirrorPod
from tenants.models import Namespace, Tenant
from tests.support.rows import running
from tests.support.rows.waiting_runs import NODE, runs, waits
from tests.workloads.advice.test_advice_facts import house
from tests.workloads.cases.cluster_objects import NOW, SUSPENDED, WISH, pending
from workloads.advice.class_context import ClassContext, context_sentences
from workloads.core import workload_sql
from workloads.core.class_nodes import ClassNode, ClassNodes
from workloads.core.observation import Observation
from workloads.models import Workload
from workloads.status import queries
from workloads.status.estimates.estimate import WaitReason
from workloads.status.estimates.queries import wait_reason
from workloads.status.explain import nodes as explain_nodes
from workloads.status.explain.types import Explanation
from workloads.status.observations.node_capacity import PodDemand, nodes_of
from workloads.status.phase import status_of

# A fixture of another module, by name.
__all__ = ["house"]

PREFIX = "couldn't assign flavors to pod set main: "
TAINTED = "untolerated taint {gpu-portal/class h100 NoSchedule <nil>} in flavor h100-1"
OTHERS = f"{PREFIX}{TAINTED}, {TAINTED}"
DOMAINS = f"{PREFIX}no topology domains at level: kubernetes.io/hostname"
TOPOLOGY = f'{PREFIX}topology "gpu-portal" doesn\'t allow to fit any of 1 pod(s). Total nodes: 1; excluded: x: 1'
# Two GPUs, both free, on a node with sufficient cpu and memory.
ROOMY = ClassNode("n1", capacity=2, allocatable=2, cpu_free=8, memory_free_gib=32)


def told(*nodes: ClassNode, message: str = OTHERS, workers: int = 1, **asked: int) -> Explanation | None:
    seen = ClassNodes(nodes, **{"units": 2, "cpu": 4, "memory_gib": 16, "resource": "nvidia.com/gpu", **asked})
    return explain_nodes.by_nodes(Observation(nodes=seen), message, class_name="A100", workers=workers)


def node(**changes: Any) -> ClassNode:
    return replace(ROOMY, **changes)


AT = datetime(2026, 11, 27, 14, 2, tzinfo=UTC)
CORDONED = node(schedulable=False, cordon=Cordon("kubectl", AT))
ONE_CARD = node(capacity=1, allocatable=1)
CASES: list[tuple[tuple[ClassNode, ...], str, str, dict[str, Any]]] = [
    ((), "no_node_matches", "No node in the cluster has the labels of A100.", {"nodes": 0}),
    (
        (node(kept=True),), "no_node_matches",
        "No node of A100 is available: 1 is reserved for other workloads.", {"nodes": 1},
    ),
    (
        (node(schedulable=False), node(kept=True), node(kept=True)), "nodes_closed",
        "No node of A100 is available: 1 is cordoned, 2 are reserved for other workloads.", {"nodes": 3},
    ),
    (
        (node(ready=False), node(kept=True)), "nodes_down",
        "No node of A100 is available: 1 is not ready, 1 is reserved for other workloads.", {"nodes": 2},
    ),
    (
        (node(allocatable=0),), "no_units_offered",
        "No units of A100 are allocatable: its only schedulable node reports 0 of 2: the device plugin there has "
        "stopped, or all are unhealthy.", {"nodes": 1},
    ),
    (
        (node(allocatable=0, capacity=0),), "no_units_offered",
        "No units of A100 are allocatable: its only schedulable node reports none.", {"nodes": 1},
    ),
    (
        (node(used=1), node(allocatable=0)), "no_node_fits",
        "No single node has 2 units of A100 free: 1 is free on one node; 1 node offers none: its device plugin may "
        "have stopped.", {"units": 2, "free_units": 1, "most_on_one_node": 1},
    ),
    (
        (node(allocatable=0, capacity=0), node(allocatable=0, capacity=1)), "no_units_offered",
        "No units of A100 are allocatable: all 2 schedulable nodes report 0 of 1: the device plugin there has stopped, "
        "or all are unhealthy.", {"nodes": 2},
    ),
    (
        (ONE_CARD, ONE_CARD, node(used=2)), "no_node_fits",
        "No single node has 2 units of A100 free: 2 are free, at most 1 on one node.",
        {"units": 2, "free_units": 2, "most_on_one_node": 1},
    ),
    (
        (node(used=1), node(schedulable=False)), "no_node_fits",
        "No single node has 2 units of A100 free: 1 is free on one node; 1 node is cordoned.",
        {"units": 2, "free_units": 1, "most_on_one_node": 1},
    ),
    # Maintenance says itself when its node is back.
    (
        (node(used=1), CORDONED, replace(CORDONED, cordon=Cordon("gpu-portal", AT, is_maintenance=True))),
        "no_node_fits",
        "No single node has 2 units of A100 free: 1 is free on one node; 2 nodes are cordoned. 2 units of A100 are "
        "free on node n1, cordoned with kubectl since 27 Nov 2026, 14:02.",
        {"units": 2, "free_units": 1, "most_on_one_node": 1},
    ),
    (
        (replace(CORDONED, cordon=Cordon("", AT)), CORDONED, replace(CORDONED, used=1)), "nodes_closed",
        "No node of A100 is available: 3 are cordoned. 2 units of A100 are free on node n1, cordoned since 27 Nov "
        "2026, 14:02, by whom is unknown, and others on 1 more cordoned node.",
        {"nodes": 3},
    ),
    # Its units are in use: the cordon is not the reason.
    (
        (node(used=2), replace(CORDONED, used=1)), "no_node_fits",
        "No single node has 2 units of A100 free: no nvidia.com/gpu is free; 1 node is cordoned.",
        {"units": 2, "free_units": 0, "most_on_one_node": 0},
    ),
    (
        (node(allocatable=1),), "no_node_fits",
        "No single node has 2 units of A100 free: 1 is free on one node; 1 more is unhealthy.",
        {"units": 2, "free_units": 1, "most_on_one_node": 1},
    ),
    (
        (node(used=2),), "no_node_fits",
        "No single node has 2 units of A100 free: no nvidia.com/gpu is free.",
        {"units": 2, "free_units": 0, "most_on_one_node": 0},
    ),
    (
        (node(used=2, ending=1), node(used=2, ending=2, name="n2")), "previous_ending",
        "The previous pod is still terminating: 2 units of A100 on node n2 are in use until it is gone.",
        {"node": "n2", "units": 2, "ending_units": 2},
    ),
    (
        (node(used=1, ending=1),), "previous_ending",
        "The previous pod is still terminating: 1 unit of A100 on node n1 is in use until it is gone.",
        {"node": "n1", "units": 2, "ending_units": 1},
    ),
    (
        (node(used=2, ending=1),), "no_node_fits",
        "No single node has 2 units of A100 free: no nvidia.com/gpu is free.",
        {"units": 2, "free_units": 0, "most_on_one_node": 0},
    ),
    (
        (node(cpu_free=3.5), node(used=2)), "no_cpu_or_memory",
        "Units of A100 are free, but their nodes have too little cpu free: 4 cores requested, at most 3 free on "
        "one node.",
        {"nodes": 2, "resource": "cpu", "asked": 4, "available": 3},
    ),
    (
        (node(memory_free_gib=-2),), "no_cpu_or_memory",
        "Units of A100 are free, but their nodes have too little memory free: 16 GiB requested, at most 0 free "
        "on one node.",
        {"nodes": 1, "resource": "memory", "asked": 16, "available": 0},
    ),
    # One node lacks cpu and the other memory: each has its own remedy, and the first is shown.
    (
        (node(cpu_free=1), node(memory_free_gib=8)), "no_cpu_or_memory",
        "Units of A100 are free, but their nodes have too little cpu free: 4 cores requested, at most 1 free on "
        "one node.",
        {"nodes": 2, "resource": "cpu", "asked": 4, "available": 1},
    ),
    (
        (node(cpu_free=1, memory_free_gib=8),), "no_cpu_or_memory",
        "Units of A100 are free, but their nodes have too little cpu and memory free: 4 cores and 16 GiB requested.",
        {"nodes": 1},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("nodes", "reason", "sentence", "facts"), CASES)
@pytest.mark.parametrize("message", [OTHERS, DOMAINS, TOPOLOGY])
def test_what_is_told(
    nodes: tuple[ClassNode, ...], reason: str, sentence: str, facts: dict[str, Any], message: str
) -> None:
    found = told(*nodes, message=message)
    assert found is not None
    assert (found.reason, found.sentence, found.facts) == (reason, sentence, facts)
    assert (found.raw, found.raw_from) == (message, "Kueue")


def test_nothing_is_told_where_a_node_takes_it_or_where_the_queue_waits_for_something_else() -> None:
    assert told(ONE_CARD, ROOMY) is None
    needed = f"{PREFIX}insufficient unused quota for nvidia.com/gpu in flavor a100-1, 2 more needed, {TAINTED}"
    assert told(message=needed) is None
    assert explain_nodes.by_nodes(Observation(), OTHERS, class_name="A100") is None


@pytest.mark.parametrize(
    ("nodes", "units", "helps"), [((node(used=1),), 2, True), ((node(used=2),), 2, False), ((node(used=2),), 1, False)]
)
def test_fewer_units_are_named_only_where_a_node_has_fewer(
    nodes: tuple[ClassNode, ...], units: int, helps: bool
) -> None:
    found = told(*nodes, units=units)
    assert found is not None
    assert ("fewer units" in found.remedy) is helps


def test_of_several_workers_so_many_fit() -> None:
    found = told(ROOMY, ROOMY, ONE_CARD, workers=3)
    assert found is not None
    lead = "Only 2 of 3 workers with 2 units of A100 each fit on the nodes now. All workers must start together."
    assert found.sentence == lead
    assert told(ROOMY, ROOMY, ROOMY, workers=3) is None
    assert told(node(allocatable=4, capacity=4), workers=2) is None, "with 8 cores and 32 GiB"
    assert told(node(allocatable=4, capacity=4, cpu_free=7), workers=2) is not None


def test_without_nodes_a_text_that_is_silent_about_its_own_class_is_no_unknown_one() -> None:
    for message, reason in ((OTHERS, "no_node_fits"), (DOMAINS, "nodes_closed")):
        found = status_of(WISH, Observation(SUSPENDED, pending(message)), now=NOW)
        assert found.explained is not None
        assert (found.reason, found.explained.is_known) == (reason, True)


def test_when_it_starts_nobody_knows_and_that_is_what_is_said() -> None:
    """The neighbour waits for units in use on a node, whose end may be known."""
    for node_, wait in ((node(schedulable=False), WaitReason.NODES), (node(used=2), WaitReason.NODE)):
        nodes = ClassNodes((node_,), units=2, cpu=4, memory_gib=16)
        assert wait_reason(status_of(WISH, Observation(SUSPENDED, pending(OTHERS), nodes=nodes), now=NOW)) is wait


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ('ResourceClaimTemplate x: failed to get DeviceClass a.b: DeviceClass.resource.k8s.io "a.b" not found',
         "device_class_missing"),
        ("DeviceClass a.b is not mapped in DRA configuration for podset main", "device_class_not_counted"),
    ],
)  # fmt: skip
def test_a_device_class_that_nobody_knows_is_told_apart_from_one_that_is_not_counted(message: str, reason: str) -> None:
    found = status_of(WISH, Observation(SUSPENDED, pending(message)), now=NOW)
    assert found.reason == reason
    assert "device class a.b" in found.sentence


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ({}, []),
        ({"allocatable": 4}, []),
        ({"allocatable": 0}, ["No node has allocatable GPUs of A100."]),
        ({"allocatable": 7, "unhealthy": 1}, ["1 of the 8 GPUs of A100 is unhealthy and not allocatable."]),
        ({"allocatable": 6, "unhealthy": 2}, ["2 of the 8 GPUs of A100 are unhealthy and not allocatable."]),
        (
            {"allocatable": 8, "cordoned": 1},
            ["1 GPU of A100 is on nodes that are cordoned or reserved for other workloads."],
        ),
        (
            {"idle": 2},
            ["A few GPUs of A100 are in use by idle notebooks, in all teams together."],
        ),
        ({"idle": 3}, ["3 GPUs of A100 are in use by idle notebooks, in all teams together."]),
        (
            {"outside": 2, "idle": 3},
            [
                "2 GPUs of A100 are in use by pods of your team that were not started in the portal. The portal does "
                "not stop them. Contact the person who created them, or an operator.",
                "3 GPUs of A100 are in use by idle notebooks, in all teams together.",
            ],
        ),
    ],
)
def test_what_is_known_around_a_wait(known: dict[str, int], said: list[str]) -> None:
    """Nothing unknown is shown, and no small number of units that other teams hold."""
    assert list(context_sentences(ClassContext("A100", "GPU", **known))) == said


# ---- nodes from the mirror -------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_what_is_read_of_the_nodes_of_a_class(
    house: Tenant, namespace_a: Namespace, cluster: Cluster, a100: GpuClass, alice: User
) -> None:
    """Counts the class's pods and other pods, also terminating ones, but not ended ones."""
    runs(namespace_a, a100, alice, "busy", units=3)
    MirrorPod.objects.update(record=requests(a100, units=3, cpu=6000, memory=10 * 2**30))
    runs(namespace_a, a100, alice, "going", units=1)
    MirrorPod.objects.filter(name="going-x").update(deleting_since=timezone.now())
    runs(namespace_a, a100, alice, "over", units=4)
    MirrorPod.objects.filter(name="over-x").update(phase="Succeeded")
    MirrorNode.objects.filter(name="a100-2").update(schedulable=False)
    waiting = running.workload(namespace_a, a100, name="waits", by=alice, units=2).runs.get()
    place = PodDemand.of(waiting)
    assert place is not None
    found = nodes_of(cluster.pk, {7: place})[7]
    by_name = {one.name: one for one in found.nodes}
    whole = mirrored_node(cluster, NODE)["allocatable"]
    busy = by_name[NODE]
    assert (busy.allocatable, busy.used, busy.ending, busy.free) == (whole[a100.resource], 4, 1, 0)
    assert (busy.cpu_free, busy.memory_free_gib) == (
        (whole["cpu"] - 6000) / 1000, round((whole["memory"] - 10 * 2**30) / 2**30, 2),
    )  # fmt: skip
    assert (by_name["a100-2"].is_open, busy.is_open) == (False, True)
    assert (found.units, found.cpu, found.memory_gib) == (2, waiting.spec["cpu"], waiting.spec["memory_gib"])
    [other] = nodes_of(cluster.pk, {7: replace(place, tolerations=())})[7].nodes[:1]
    assert other.kept
    assert nodes_of(cluster.pk, {7: replace(place, labels={"example.org/none": "yes"})})[7].nodes == ()


def requests(a100: GpuClass, *, units: int, **others: int) -> dict[str, Any]:
    record = MirrorPod.objects.get().record
    return {**record, "requests": {a100.resource: units, **others}}


def mirrored_node(cluster: Cluster, name: str) -> dict[str, Any]:
    return MirrorNode.objects.get(cluster_id=cluster.pk, name=name).record


@pytest.mark.django_db
def test_nodes_are_read_in_one_query_where_something_waits_for_one(
    house: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    """One query however many runs wait for a node; none if the waiting runs wait for quota."""
    for number in (1, 2):
        waits(namespace_a, a100, alice, f"waits-{number}")
    count = queries_of_rows()
    for number in (3, 4):
        waits(namespace_a, a100, alice, f"waits-{number}", text=OTHERS)
    assert queries_of_rows() == count + 1
    MirrorNode.objects.all().delete()
    rows = queries.workload_rows(workload_sql.with_related(Workload.objects.filter(name="waits-3")))
    assert rows[0].status.reason == "no_node_matches"


def queries_of_rows() -> int:
    with CaptureQueriesContext(connection) as captured:
        queries.workload_rows(workload_sql.with_related(Workload.objects.all()))
    return len(captured)
