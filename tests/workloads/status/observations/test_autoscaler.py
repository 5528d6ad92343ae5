"""Which runs ask what Karpenter does, and with which needs."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster
from tenants.models import Namespace
from tests.support.cluster import karpenter
from tests.support.cluster.karpenter import GPU
from tests.support.rows import mirrored, running
from tests.workloads.cases.cluster_objects import ADMITTED, condition, job, pod
from workloads.core.observation import Observation
from workloads.models import Run
from workloads.status.observations.autoscaler import pod_need, with_autoscaler

pytestmark = pytest.mark.django_db
UNPLACED = pod(condition("PodScheduled", true=False, reason="Unschedulable", message="0/8 nodes are available"))
PLACED = pod(condition("PodScheduled"), node="a100-1")


@pytest.fixture
def run(namespace_a: Namespace, a100: GpuClass, alice: User) -> Run:
    found = running.workload(namespace_a, a100, name="train", by=alice, units=2).runs.get()
    found.spec = {**found.spec, "is_autoscaled": True}
    return found


def seen_of(run: Run, one: Any = UNPLACED) -> Observation:
    return with_autoscaler(run.workload.namespace.cluster_id, {1: Observation(job(), ADMITTED, (one,))}, {1: run})[1]


def test_a_pod_that_waits_is_told_of_the_pools_that_suit_its_class(run: Run, cluster: Cluster, a100: GpuClass) -> None:
    pool = karpenter.node_pool(limits={GPU: "4"}, resources={GPU: "4"}, labels=dict(a100.node_labels))
    other = karpenter.node_pool("cpus", limits={"cpu": "0"}, resources={"cpu": "0"}, labels={"pool": "cpus"})
    assert seen_of(run).autoscaler is None, "nothing is known yet"
    mirrored.seen(cluster, NodePool=[mirrored.with_metadata(one) for one in (pool, other)])
    found = seen_of(run).autoscaler
    assert found is not None
    assert ([one.name for one in found.pools], found.shortfalls["gpus"].needed) == (["gpus"], 2)


def test_nothing_is_read_for_another_pod_or_class(run: Run, cluster: Cluster) -> None:
    mirrored.seen(cluster)
    with CaptureQueriesContext(connection) as queries:
        assert seen_of(run, PLACED).autoscaler is None
        run.spec["is_autoscaled"] = False
        assert seen_of(run).autoscaler is None
    assert not [one for one in queries if "mirror" in one["sql"]]


def test_what_one_pod_needs(run: Run) -> None:
    need = pod_need(run)
    spec = run.spec
    assert need.requests == {"cpu": spec["cpu"] * 1000, "memory": spec["memory_gib"] * 2**30, GPU: 2}
    assert need.tolerations[0] == {
        "key": "gpu-portal/class", "operator": "Equal", "value": spec["gpu_class"], "effect": "NoSchedule"
    }  # fmt: skip
    run.spec.update(interface="none", resource="")
    assert (pod_need(run).resource, GPU in pod_need(run).requests) == ("cpu", False)
