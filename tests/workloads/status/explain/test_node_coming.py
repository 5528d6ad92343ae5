"""A pod that finds no node, of a class to which an autoscaler adds nodes."""

from __future__ import annotations

import pytest

from workloads.core.class_nodes import ClassNode, ClassNodes
from workloads.status.explain import nodes
from workloads.status.explain.queue import RequestedSize, pending
from workloads.status.explain.scheduling import unschedulable
from workloads.status.explain.types import Explanation, Who, who_acts

OTHERS = "0/8 nodes are available: 8 node(s) didn't match Pod's node affinity/selector."
VOLUME = "0/8 nodes are available: 8 node(s) had volume node affinity conflict."


def coming(message: str, *, there: int = 0, max_units: int | None = 4) -> Explanation | None:
    near = ClassNodes((ClassNode("one", allocatable=there, capacity=there),) if there else (), 1, 1, 1)
    return nodes.node_coming(near, unschedulable(message, near), max_units=max_units, minutes=1)


@pytest.mark.parametrize("there", [0, 3])
def test_a_node_comes_while_the_class_has_fewer_than_its_maximum(there: int) -> None:
    found = coming(OTHERS, there=there)
    assert found is not None
    assert found.reason == "node_coming"
    assert found.sentence == "No node has this now. A node is added on demand, usually within 1 minute."
    assert (found.raw, who_acts(found.reason)) == (OTHERS, Who.NOBODY)


@pytest.mark.parametrize(("message", "there", "most"), [(OTHERS, 4, 4), (OTHERS, 0, None), (VOLUME, 0, 4)])
def test_no_node_comes(message: str, there: int, most: int | None) -> None:
    assert coming(message, there=there, max_units=most) is None


def test_a_flavor_without_a_topology_of_another_class_is_ruled_out_like_by_its_taint() -> None:
    """Kueue's message for a run of a class with a topology; its own flavor had quota, and no node."""
    message = (
        'couldn\'t assign flavors to pod set main: Flavor "elastic-1a39cc2e" does not support TopologyAwareScheduling, '
        "untolerated taint {gpu-portal/class h100 NoSchedule <nil>} in flavor h100-15a5ec9e"
    )
    assert nodes.names_only_other_flavors(message)
    size = RequestedSize(units=1)
    assert pending(message, size, class_name="A100", slug="a100").reason == "no_node_fits"
    assert pending(message, size, class_name="A100", slug="elastic").reason == "flavor_mismatch"
