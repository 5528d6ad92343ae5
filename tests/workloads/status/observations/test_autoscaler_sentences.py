"""A pod for which Karpenter adds a node, or may not: what the run's status says."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from cluster.reads.autoscaler.pools import Autoscaler, NewNode, NodeClaim, NodePool, Shortfall
from cluster.reads.observed import WarningEvent
from tests.support.cluster.karpenter import GPU, TOO_FEW
from tests.workloads.cases.cluster_objects import ADMITTED, AGO, NOW, WISH, condition, job, pod, warning
from workloads.core.observation import Observation
from workloads.status.explain.types import FACTS, Who, who_acts
from workloads.status.phase import status_of
from workloads.status.types import Phase, Status

NONE = "0/8 nodes are available: 8 node(s) didn't match Pod's node affinity/selector."
UNPLACED = pod(condition("PodScheduled", true=False, reason="Unschedulable", message=NONE))
SOME = NewNode({}, (), ())
READY = condition("Ready")
POOL = NodePool("gpus", SOME, {GPU: 16}, {GPU: 16}, (READY,))
BROKEN = replace(
    POOL, conditions=(condition("Ready", true=False, reason="NodeClassReady", message="NodeClass a100 not found"),)
)
FULL = Shortfall(GPU, 16, 16, 4)
ORDER = NodeClaim("gpus-k7hxh", "gpus", SOME, AGO, False, {GPU: 4}, {})
COMING = "No node has this now. A node is added on demand, usually within 10 minutes."


def told(seen: Autoscaler | None, *events: WarningEvent) -> Status:
    wish = replace(WISH, max_units=16, node_minutes=10)
    found = Observation(job(), ADMITTED, (UNPLACED,), warnings=events, autoscaler=seen)
    return status_of(wish, found, now=NOW)


def refused(message: str = TOO_FEW, *, minutes_ago: float = 0) -> WarningEvent:
    return warning("Pod", "FailedScheduling", message, last_at=NOW - timedelta(minutes=minutes_ago))


CASES: dict[str, tuple[Status, str, str]] = {
    "at its limit": (
        told(Autoscaler((POOL,), None, {"gpus": FULL})),
        "autoscaler_limit",
        "The autoscaler may not add more nodes: NodePool gpus is at its limit of 16 nvidia.com/gpu.",
    ),
    "less is left than one node needs": (
        told(Autoscaler((POOL,), None, {"gpus": Shortfall(GPU, 6, 4, 4)})),
        "autoscaler_limit",
        "The autoscaler may not add more nodes: NodePool gpus is near its limit of 6 nvidia.com/gpu: 2 nvidia.com/gpu "
        "are left, and a node for this needs 4 nvidia.com/gpu.",
    ),
    "at its limit of cores": (
        told(Autoscaler((POOL,), None, {"gpus": Shortfall("cpu", 96_000, 96_000, 8000)})),
        "autoscaler_limit",
        "The autoscaler may not add more nodes: NodePool gpus is at its limit of 96 cores.",
    ),
    "at its limit of nodes": (
        told(Autoscaler((POOL,), None, {"gpus": Shortfall("nodes", 1, 1, 1)})),
        "autoscaler_limit",
        "The autoscaler may not add more nodes: NodePool gpus is at its limit of 1 node.",
    ),
    "one is at its limit and one is not ready": (
        told(Autoscaler((replace(BROKEN, name="broken"), POOL), None, {"gpus": FULL})),
        "autoscaler_limit",
        "The autoscaler may not add more nodes: NodePool gpus is at its limit of 16 nvidia.com/gpu.",
    ),
    "two are at their limit": (
        told(Autoscaler((POOL, replace(POOL, name="more")), None, {"gpus": FULL, "more": FULL})),
        "autoscaler_limit",
        "The autoscaler may not add more nodes: NodePool gpus is at its limit of 16 nvidia.com/gpu. 1 other NodePool "
        "that would suit it is too.",
    ),
    "another pool has room": (
        told(Autoscaler((POOL, replace(POOL, name="more")), None, {"gpus": FULL})),
        "node_coming",
        COMING,
    ),
    "not ready": (
        told(Autoscaler((BROKEN,))),
        "autoscaler_not_ready",
        "The autoscaler adds no node: NodePool gpus is not ready (NodeClass a100 not found).",
    ),
    "ordered": (
        told(Autoscaler((POOL,), ORDER)),
        "node_starting",
        "No node has this now. A node that suits it is being started by NodePool gpus, since 21 Nov 2026, 11:58.",
    ),
    "ordered at the limit, for this pod": (
        told(Autoscaler((POOL,), ORDER, {"gpus": FULL}), refused(minutes_ago=4)),
        "node_starting",
        "No node has this now. A node that suits it is being started by NodePool gpus, since 21 Nov 2026, 11:58.",
    ),
    "ordered for another pod": (
        told(Autoscaler((POOL,), ORDER, {"gpus": FULL}), refused(minutes_ago=1)),
        "autoscaler_limit",
        "The autoscaler may not add more nodes: NodePool gpus is at its limit of 16 nvidia.com/gpu.",
    ),
    "refused": (
        told(Autoscaler((POOL,)), refused()),
        "autoscaler_refused",
        "The autoscaler adds no node for this: no instance type has enough resources.",
    ),
    "refused in the words of an earlier release": (
        told(
            Autoscaler((POOL,)),
            refused(
                'Failed to schedule pod, incompatible with nodepool "gpus", daemonset overhead={"cpu":"10m"}, no '
                "instance type satisfied resources"
            ),
        ),
        "autoscaler_refused",
        'The autoscaler adds no node for this: incompatible with nodepool "gpus".',
    ),
    "refused long ago": (told(Autoscaler((POOL,)), refused(minutes_ago=7)), "node_coming", COMING),
    "the scheduler's own event": (told(Autoscaler((POOL,)), refused(NONE)), "node_coming", COMING),
    "no pool suits it": (told(Autoscaler(), refused()), "node_coming", COMING),
    "not known": (told(None, refused()), "node_coming", COMING),
}


@pytest.mark.parametrize("case", CASES)
def test_the_sentence(case: str) -> None:
    status, reason, sentence = CASES[case]
    assert (status.reason, status.sentence) == (reason, sentence)
    for name, value in status.facts.items():
        assert isinstance(value, FACTS[name]), name


def test_only_a_node_that_comes_is_waited_for() -> None:
    """The pod is two minutes old, and a node of the class usually takes ten."""
    assert CASES["ordered"][0].phase is Phase.PREPARING
    assert CASES["at its limit"][0].phase is Phase.BLOCKED
    assert who_acts("node_starting") is Who.NOBODY
    assert {who_acts(f"autoscaler_{name}") for name in ("limit", "not_ready", "refused")} == {Who.OPERATORS}


def test_the_figures() -> None:
    assert CASES["less is left than one node needs"][0].facts == {
        "node_pool": "gpus", "resource": GPU, "limit": 6, "used": 4, "asked": 4
    }  # fmt: skip
    assert CASES["at its limit of cores"][0].facts["asked"] == 8
    assert CASES["ordered"][0].facts == {"node_pool": "gpus"}
    refusal = CASES["refused"][0].explained
    assert refusal is not None
    assert (refusal.raw, refusal.raw_from) == (TOO_FEW, "Karpenter")
