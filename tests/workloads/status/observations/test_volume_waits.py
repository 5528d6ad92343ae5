"""A run that waits because of its volume: for a node where that can be mounted, or because it is not there any more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster, MirrorNode, MirrorObject
from cluster.reads.observed import Condition
from cluster.reads.volume_place import VolumePlace
from tenants.models import Namespace, Tenant
from tests.support.rows import claims, make, mirrored
from tests.support.rows.waiting_runs import waits
from tests.workloads.cases.cluster_objects import (
    ADMITTED,
    NOW,
    SUSPENDED,
    UNSCHEDULABLE,
    WISH,
    condition,
    job,
    pending,
    pod,
)
from workloads.core import workload_sql
from workloads.core.class_nodes import ClassNode, ClassNodes
from workloads.core.observation import UNUSABLE_PHASES, ClaimState, Observation
from workloads.models import Workload
from workloads.status import queries
from workloads.status.explain import scheduling
from workloads.status.phase import status_of
from workloads.status.types import Phase, Status
from workloads.status.workload_row import WorkloadRow

MESSAGE = (
    "couldn't assign flavors to pod set main: topology \"gpu-portal\" doesn't allow to fit any of 1 pod(s). "
    'Total nodes: 4; excluded: affinity: 2, resource "nvidia.com/gpu": 2'
)
IN_B = VolumePlace(({"matchExpressions": [{"key": claims.ZONE, "operator": "In", "values": ["b"]}]},))
DATA = ClaimState("data", phase="bound", place=IN_B)
FULL = ClassNode("b-1", capacity=2, allocatable=2, used=2, cpu_free=8, memory_free_gib=32)


def waiting(*near: ClassNode, elsewhere: int, claim: ClaimState = DATA) -> Status:
    nodes = ClassNodes(near, 2, 4, 16, "nvidia.com/gpu", elsewhere)
    return status_of(WISH, Observation(SUSPENDED, pending(MESSAGE), nodes=nodes, claim=claim), now=NOW)


class TestInTheQueue:
    def test_the_nodes_where_the_volume_is_are_full(self) -> None:
        found = waiting(FULL, elsewhere=2)
        assert (found.phase, found.reason) == (Phase.QUEUED, "no_node_fits")
        assert found.sentence == (
            "No single node has 2 units of A100 free: no nvidia.com/gpu is free. Its volume data can be mounted only "
            "in zone b, not on 2 other nodes of A100."
        )

    def test_the_class_has_no_node_there(self) -> None:
        found = waiting(elsewhere=4)
        assert (found.phase, found.reason) == (Phase.QUEUED, "volume_elsewhere")
        assert found.sentence == "The volume data can be mounted only in zone b, and no node of A100 is there."
        assert "change" in found.actions

    def test_nothing_about_a_volume_that_all_nodes_can_mount(self) -> None:
        assert "volume" not in waiting(FULL, elsewhere=0).sentence

    @pytest.mark.parametrize("phase", UNUSABLE_PHASES)
    def test_the_volume_is_not_there_any_more(self, phase: str) -> None:
        found = waiting(FULL, elsewhere=2, claim=replace(DATA, phase=phase))
        assert (found.phase, found.reason) == (Phase.BLOCKED, "volume_missing")
        assert found.sentence == f"The volume data {UNUSABLE_PHASES[phase]}."


@pytest.mark.parametrize(("near", "words"), [((FULL,), "is not the node"), ((), "")])
def test_to_the_scheduler_nodes_of_the_class_elsewhere_do_not_match(near: tuple[ClassNode, ...], words: str) -> None:
    message = "0/8 nodes are available: 8 node(s) didn't match Pod's node affinity/selector."
    nodes = ClassNodes(near, 2, 4, 16, "nvidia.com/gpu", 3 - len(near))
    found = scheduling.unschedulable(message, nodes, DATA)
    assert found.reason == ("no_node_matches" if near else "volume_elsewhere")
    assert f"{3 - len(near)} cannot access the volume" in found.sentence
    assert "5 do not match the class" in found.sentence
    assert words in found.sentence


# As the provisioner of k3s reports it.
SAID = (
    'failed to provision volume with StorageClass "local-path": NodePath only supports ReadWriteOnce and '
    "ReadWriteOncePod (1.22+) access modes"
)


class TestWhileTheVolumeIsProvisioned:
    """The scheduler has chosen a node and waits for the volume: it says nothing of the pod, then that time ran out."""

    def told(self, *conditions: Condition, **claim: str) -> Status:
        seen = Observation(job(), ADMITTED, (pod(*conditions),), claim=ClaimState("data", "local-path", **claim))
        return status_of(WISH, seen, now=NOW)

    # A pod that Kueue held back keeps that condition until the scheduler has another one.
    @pytest.mark.parametrize("reason", ["", "SchedulingGated", "SchedulerError"])
    def test_a_failure_is_told_in_the_words_of_the_provisioner(self, reason: str) -> None:
        late = [condition("PodScheduled", true=False, reason=reason)] if reason else []
        found = self.told(*late, phase="pending", node="n1", problem=SAID)
        assert (found.phase, found.reason) == (Phase.BLOCKED, "volume_unbound")
        assert found.sentence == (
            "Waiting for the volume data: the storage system could not provision it on node n1 (storage class "
            "local-path)."
        )
        assert found.explained is not None
        assert (found.explained.raw, found.explained.raw_source) == (SAID, "the storage")

    def test_without_a_failure_it_says_where(self) -> None:
        found = self.told(phase="pending", node="n1")
        assert (found.phase, found.reason) == (Phase.PREPARING, "placing")
        assert found.sentence == "Its volume data is being provisioned on node n1."

    @pytest.mark.parametrize("claim", [{"phase": "pending", "node": ""}, {"phase": "bound", "node": "n1"}])
    def test_a_scheduler_that_has_not_answered_is_not_excused_by_a_volume(self, claim: dict[str, str]) -> None:
        assert self.told(**claim, problem=SAID).reason == "scheduler_silent"

    def test_what_the_scheduler_reports_comes_first(self) -> None:
        assert self.told(UNSCHEDULABLE, phase="pending", node="n1", problem=SAID).reason == "no_node_fits"


def test_a_run_whose_volume_was_bound_after_its_job_is_placed_there_at_another_start() -> None:
    message = (
        "0/8 nodes are available: 1 node(s) didn't match PersistentVolume's node affinity, 7 node(s) didn't match "
        "Pod's node affinity/selector."
    )
    found = scheduling.unschedulable(message, ClassNodes((FULL,), 2, 4, 16, "nvidia.com/gpu", 2), DATA)
    assert found.reason == "volume_elsewhere"
    assert found.remedy == "Start it again: it is placed in zone b then, where its volume is."
    nowhere = scheduling.unschedulable(message, ClassNodes((), 2, 4, 16, "nvidia.com/gpu", 3), DATA)
    assert "another volume" in nowhere.remedy


def test_of_a_class_whose_nodes_are_not_observed_those_that_do_not_match_cannot_mount_the_volume() -> None:
    """A class without GPUs: its nodes have no units that could be counted."""
    message = (
        "0/19 nodes are available: 17 node(s) had untolerated taint {a: b}, 2 node(s) didn't match Pod's node "
        "affinity/selector."
    )
    assert scheduling.unschedulable(message, None, DATA).reason == "no_node_matches"
    found = scheduling.unschedulable(message, None, replace(DATA, is_out_of_reach=True))
    assert found.reason == "volume_elsewhere"
    assert "2 cannot access the volume" in found.sentence
    assert found.sentence.endswith("The volume is data.")


@pytest.fixture
def stuck(namespace_a: Namespace, a100: GpuClass, alice: User, team_a: Tenant, cluster: Cluster) -> Workload:
    """Queued with the volume data, of which one of the nodes is in the zone."""
    mirrored.hardware_seen(cluster)
    make.grant(team_a, a100, units=4)
    found: Workload = waits(namespace_a, a100, alice, text=MESSAGE)
    spec = {
        "interface": "device-plugin", "node_labels": dict(a100.node_labels), "tolerations": list(a100.tolerations),
        "resource": a100.resource, "cpu": 1, "memory_gib": 1, "claim": "data",
    }  # fmt: skip
    found.runs.update(spec={**found.runs.get().spec, **spec})
    for node in MirrorNode.objects.filter(name__startswith="a100"):
        node.record["labels"][claims.ZONE] = "b" if node.name == "a100-1" else "a"
        node.record["allocatable"][a100.resource] = 1
        node.save()
    claims.claimed(namespace_a, "data")
    claims.bound(namespace_a, "data")
    return found


def shown() -> WorkloadRow:
    (row,) = queries.workload_rows(workload_sql.with_related(Workload.objects.all()))
    return row


@pytest.mark.django_db
class TestFromTheMirror:
    def test_only_nodes_where_the_volume_is_are_looked_at(self, stuck: Workload) -> None:
        told = shown().status
        assert told.reason == "no_node_fits"
        assert "Its volume data can be mounted only in zone b, not on 5 other nodes" in told.sentence

    def test_when_the_claim_goes_the_page_says_so(self, stuck: Workload) -> None:
        MirrorObject.objects.filter(kind="PersistentVolumeClaim").delete()
        assert shown().status.reason == "volume_missing"

    def test_more_such_runs_ask_no_more(
        self, stuck: Workload, namespace_a: Namespace, a100: GpuClass, alice: User, django_assert_num_queries: Any,
        django_assert_max_num_queries: Any,
    ) -> None:  # fmt: skip
        with django_assert_max_num_queries(99) as one:
            shown()
        for name in ("second", "third"):
            more = waits(namespace_a, a100, alice, name=name, text=MESSAGE)
            more.runs.update(spec={**stuck.runs.get().spec, "claim": name})
            claims.claimed(namespace_a, name)
            claims.bound(namespace_a, name)
        with django_assert_num_queries(len(one)):
            queries.workload_rows(workload_sql.with_related(Workload.objects.all()))
