"""NodePools and NodeClaims as the mirror has them: which suit a pod, and which limit forbids another node for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from cluster.models import Cluster
from cluster.reads.autoscaler.pools import Autoscaler, NewNode, PodNeed, Shortfall, autoscaler_for
from cluster.reads.autoscaler.queries import pools_and_claims
from tests.support.cluster import karpenter
from tests.support.cluster.karpenter import GPU, condition
from tests.support.rows import mirrored

POD = PodNeed(
    labels={"test.example/own": "x"},
    tolerations=({"key": GPU, "operator": "Exists"},),
    requests={"cpu": 8000, "memory": 32 * 2**30, GPU: 4},
    resource=GPU,
)
OWN = {"test.example/own": "x"}


def found(cluster: Cluster, *pools: dict[str, Any], claims: Any = (), pod: PodNeed = POD) -> Autoscaler:
    raws = [mirrored.with_metadata(one) for one in pools]
    orders = [mirrored.with_metadata(one) for one in claims]
    mirrored.seen(cluster, NodePool=raws, NodeClaim=orders)
    known = pools_and_claims(cluster.pk)
    assert known is not None
    return autoscaler_for(pod, *known)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("limits", "resources", "expected"),
    [
        ({GPU: "8"}, {GPU: "8"}, Shortfall(GPU, 8, 8, 4)),
        ({GPU: "6"}, {GPU: "4"}, Shortfall(GPU, 6, 4, 4)),
        ({GPU: "8"}, {GPU: "4"}, None),
        # Karpenter has not counted its nodes yet.
        ({GPU: "0"}, None, None),
        ({GPU: "0"}, {}, Shortfall(GPU, 0, 0, 4)),
        ({"cpu": "100"}, {"cpu": "96", GPU: "4"}, Shortfall("cpu", 100_000, 96_000, 8000)),
        ({"memory": "100Gi"}, {"memory": "68Gi"}, None),
        ({"nodes": "3"}, {"nodes": "3"}, Shortfall("nodes", 3, 3, 1)),
        ({}, {GPU: "400"}, None),
    ],
)
def test_a_limit_forbids_a_node_if_less_is_left_than_the_pod_needs(
    cluster: Cluster, limits: dict[str, str], resources: dict[str, str] | None, expected: Shortfall | None
) -> None:
    told = found(cluster, karpenter.node_pool(limits=limits, resources=resources, labels=OWN))
    assert [pool.name for pool in told.pools] == ["gpus"]
    assert told.shortfalls == ({"gpus": expected} if expected else {})


@pytest.mark.django_db
def test_a_node_that_is_ordered_comes_until_it_is_initialized(cluster: Cluster) -> None:
    launched, ready = condition("Launched"), condition("Initialized")
    for name, conditions, coming in (
        ("ordered", (), True),
        ("launched", (launched,), True),
        ("there", (launched, ready), False),
    ):
        claim = karpenter.node_claim(name, *conditions, labels=OWN)
        told = found(cluster, karpenter.node_pool(labels=OWN), claims=[claim])
        assert (told.coming is not None) == coming
    smaller = karpenter.node_claim("small", units=2, labels=OWN)
    assert found(cluster, karpenter.node_pool(labels=OWN), claims=[smaller]).coming is None
    other = karpenter.node_claim("other", labels={"test.example/own": "y"})
    assert found(cluster, karpenter.node_pool(labels=OWN), claims=[other]).coming is None


@pytest.mark.django_db
def test_a_pool_with_a_fixed_number_of_nodes_adds_none_for_a_pod(cluster: Cluster) -> None:
    static = karpenter.node_pool("static", labels=OWN)
    static["spec"]["replicas"] = 3
    deleted = karpenter.node_pool("deleted", labels=OWN)
    deleted["metadata"]["deletionTimestamp"] = "2026-11-21T11:59:00Z"
    told = found(cluster, static, deleted, karpenter.node_pool(labels=OWN))
    assert [pool.name for pool in told.pools] == ["gpus"]


@pytest.mark.django_db
def test_without_karpenter_there_is_nothing_and_before_its_list_nothing_is_known(cluster: Cluster) -> None:
    assert pools_and_claims(cluster.pk) is None
    mirrored.seen(cluster)
    with CaptureQueriesContext(connection) as queries:
        assert pools_and_claims(cluster.pk) == ([], [])
    assert len(queries) == 2


TYPE = "node.kubernetes.io/instance-type"
PRODUCT = {"nvidia.com/gpu.product": "A100"}


@pytest.mark.parametrize(
    ("labels", "requirements", "wanted", "suits"),
    [
        (PRODUCT, [], PRODUCT, True),
        ({"nvidia.com/gpu.product": "H100"}, [], PRODUCT, False),
        # Set by a program on the node, after Karpenter has decided.
        ({}, [], PRODUCT, False),
        ({}, [], {"plain": "x"}, False),
        # Set by the provider.
        ({}, [], {TYPE: "p4d.24xlarge"}, True),
        ({}, [], {"karpenter.k8s.aws/instance-gpu-name": "a100"}, True),
        ({}, [(TYPE, "In", ["g5.xlarge"])], {TYPE: "p4d.24xlarge"}, False),
        ({}, [(TYPE, "In", ["g5.xlarge", "p4d.24xlarge"])], {TYPE: "p4d.24xlarge"}, True),
        ({}, [(TYPE, "NotIn", ["g5.xlarge"])], {TYPE: "g5.xlarge"}, False),
        ({}, [("karpenter.sh/capacity-type", "In", ["on-demand"])], {"karpenter.sh/capacity-type": "spot"}, False),
        ({}, [("team", "Exists", [])], {"team": "a"}, True),
        ({}, [("team", "DoesNotExist", [])], {"team": "a"}, False),
    ],
)
def test_a_node_suits_if_it_may_have_all_labels(
    labels: dict[str, str], requirements: list[tuple[str, str, list[str]]], wanted: dict[str, str], suits: bool
) -> None:
    rules = tuple({"key": key, "operator": operator, "values": values} for key, operator, values in requirements)
    assert NewNode(labels, rules, ()).may_suit(replace(POD, labels=wanted)) == suits


def test_a_node_with_a_taint_suits_only_who_tolerates_it() -> None:
    tainted = NewNode(OWN, (), ({"key": "dedicated", "value": "b", "effect": "NoSchedule"},))
    assert not tainted.may_suit(POD)
    assert tainted.may_suit(replace(POD, tolerations=({"key": "dedicated", "operator": "Exists"},)))
    soft = NewNode(OWN, (), ({"key": "dedicated", "value": "b", "effect": "PreferNoSchedule"},))
    assert soft.may_suit(POD)
