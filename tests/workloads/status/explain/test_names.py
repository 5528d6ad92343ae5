"""Explanations name the thing: the taint, the volume, its node and class, the policy, and a quota that is not ours."""

from __future__ import annotations

import pytest

from tests.workloads.cases.cluster_objects import ADMITTED, NOW, WISH, job
from tests.workloads.cases.problems import refused, unplaced
from workloads.core.class_nodes import ClassNode, ClassNodes
from workloads.core.observation import ClaimState, Observation
from workloads.status.explain import nodes, scheduling
from workloads.status.explain.container_start import IMAGE_REASONS
from workloads.status.explain.types import Who, who_acts
from workloads.status.phase import status_of

TAINTED = ClassNode("n1", kept=True, capacity=2, allocatable=2, taint="dedicated=team-b:NoSchedule")
NEAR = ClassNodes((ClassNode("n1"), ClassNode("n2")), 1, 1, 1)


def test_the_taint_of_the_class_nodes_is_named() -> None:
    seen = ClassNodes((TAINTED, ClassNode("n2", schedulable=False)), 1, 1, 1)
    told = nodes.by_nodes(Observation(nodes=seen), "topology: no topology domains at level: x", class_name="A100")
    assert told is not None
    assert told.sentence == (
        "No node of A100 is available: 1 is cordoned, 1 is reserved for other workloads (taint "
        "dedicated=team-b:NoSchedule)."
    )


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("node(s) had untolerated taint {dedicated: team-b}", "(taint dedicated=team-b)"),
        ("node(s) had untolerated taint {maintenance: }", "(taint maintenance)"),
        ("node(s) had taint {gpu: yes}, that the pod didn't tolerate", "(taint gpu=yes)"),
        ("node(s) had untolerated taint(s)", "reserved for other workloads."),
    ],
)
def test_a_taint_in_the_schedulers_message_is_named(reason: str, words: str) -> None:
    assert words in scheduling.unschedulable(f"0/2 nodes are available: 2 {reason}.").sentence


def test_only_nodes_of_another_kind_are_counted_as_such() -> None:
    """The queue chose a node that is taken now: to the scheduler, the class's other node does not match."""
    message = (
        "0/8 nodes are available: 1 Insufficient nvidia.com/gpu, 7 node(s) didn't match Pod's node affinity/selector."
    )
    assert "7 do not match the class" in scheduling.unschedulable(message).sentence
    told = scheduling.unschedulable(message, NEAR)
    assert "6 do not match the class" in told.sentence
    assert "1 is not the node that the queue chose" in told.sentence
    every = scheduling.unschedulable("0/2 nodes are available: 2 node(s) didn't match Pod's node affinity.", NEAR)
    assert "do not match the class" not in every.sentence


def test_the_volume_its_class_and_its_place_are_named() -> None:
    claim = ClaimState("data", "fast", "a100-1", "eu-1")
    message = "0/8 nodes are available: 8 node(s) didn't match PersistentVolume's node affinity."
    told = scheduling.unschedulable(message, claim=claim)
    assert told.sentence.endswith(
        "The volume data, of the storage class fast, was created for node a100-1 in the zone eu-1."
    )
    assert "zone" not in scheduling.unschedulable(message, claim=ClaimState("data")).sentence


def test_a_storage_class_that_does_not_exist_is_named() -> None:
    message = "0/8 nodes are available: pod has unbound immediate PersistentVolumeClaims."
    lacks = ClaimState("data", "gold", problem='storageclass.storage.k8s.io "gold" not found')
    told = scheduling.unschedulable(message, claim=lacks)
    assert told.sentence == (
        "Waiting for the volume data: the storage system has not provisioned it yet; its storage class gold does not "
        "exist in the cluster."
    )
    assert (told.raw, told.raw_from) == (lacks.problem, "the storage")
    slow = scheduling.unschedulable(message, claim=ClaimState("data", "gold"))
    assert slow.sentence == (
        "Waiting for the volume data: the storage system has not provisioned it yet (storage class gold)."
    )


DENIED = "ValidatingAdmissionPolicy 'allowed' with binding 'allowed-teams' denied request: "


def test_a_policy_about_images_asks_for_another_image() -> None:
    seen = refused(f'pods "one-1-x" is forbidden: {DENIED}image docker.io/x:1 is not from registry.example.org')
    told = status_of(WISH, seen, now=NOW)
    assert told.reason in IMAGE_REASONS
    assert "admission policy allowed denied the image of the pod: image docker.io/x:1 is not from" in told.sentence
    assert told.explained is not None
    assert "Choose an image that it allows" in told.explained.remedy
    assert "change" in told.actions


def test_the_field_that_a_policy_denies_is_named() -> None:
    seen = refused(f"{DENIED}spec.template.spec.hostNetwork must not be true")
    told = status_of(WISH, seen, now=NOW)
    assert told.explained is not None
    assert "Change the field spec.template.spec.hostNetwork" in told.explained.remedy


@pytest.mark.parametrize(("quota", "is_ours"), [("gpu-portal", True), ("compute", False)])
@pytest.mark.parametrize("limit", [4, 1])
def test_a_quota_that_is_not_ours_is_named_as_such(quota: str, is_ours: bool, limit: int) -> None:
    text = (
        f"exceeded quota: {quota}, requested: requests.nvidia.com/gpu=2, used: requests.nvidia.com/gpu=3, limited: "
        f"requests.nvidia.com/gpu={limit}"
    )
    told = status_of(WISH, refused(text), now=NOW)
    assert f"ResourceQuota {quota}" in told.sentence
    assert ("(not created by the portal)" in told.sentence) is not is_ours
    assert told.explained is not None
    assert ("An operator can change or remove that ResourceQuota" in told.explained.remedy) is not is_ours


def test_who_acts_is_known_for_what_is_named() -> None:
    for seen in (refused(f"{DENIED}the image is old"), unplaced("no nodes available to schedule pods")):
        assert who_acts(status_of(WISH, seen, now=NOW).reason) is not Who.UNKNOWN
    assert Observation(job(), ADMITTED).claim is None
