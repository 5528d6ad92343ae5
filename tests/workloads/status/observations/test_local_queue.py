"""The team's queue and the LimitRanges of its namespace, as read from the mirror."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.models import Cluster
from cluster.reads import queries as mirror
from cluster.reads.observed import KueueWorkload
from tests.support.rows import mirrored
from tests.workloads.cases.cluster_objects import ABOVE, ADMITTED, NEEDED, pending
from workloads.core.observation import LocalQueueState
from workloads.status.observations.local_queue import local_queue_state

pytestmark = pytest.mark.django_db
Raw = dict[str, Any]


def flavor(name: str, units: int) -> Raw:
    return {"name": name, "resources": [{"name": "nvidia.com/gpu", "nominalQuota": str(units)}]}


@pytest.fixture
def seen(cluster: Cluster) -> None:
    """Two flavors of one class, which was relabelled, and one of another class; two LimitRanges."""
    flavors = [flavor("a100-1", 1), flavor("a100-2", 3), flavor("h100-8x-1", 2)]
    groups = [{"coveredResources": ["nvidia.com/gpu"], "flavors": flavors}]
    active = {"type": "Active", "status": "False", "reason": "Stopped", "message": "Can't admit: is stopped."}
    queue = {
        "metadata": {"name": "team-a"},
        "spec": {"stopPolicy": "Hold", "resourceGroups": groups},
        "status": {"conditions": [active]},
    }
    mirrored.seen(
        cluster,
        ClusterQueue=[mirrored.with_metadata(queue)],
        LimitRange=[
            limits("one", {"type": "Container", "max": {"cpu": "10", "memory": "64Gi"}, "min": {"cpu": "2"}}),
            limits(
                "two",
                {"type": "Container", "max": {"memory": "32Gi"}, "min": {"cpu": "500m"}},
                {"type": "Pod", "max": {"cpu": "1"}, "min": {"cpu": "4"}},
            ),
        ],
    )


def limits(name: str, *limits: Raw) -> Raw:
    return mirrored.with_metadata({"metadata": {"name": name, "namespace": "team-a"}, "spec": {"limits": [*limits]}})


@pytest.mark.usefixtures("seen")
@pytest.mark.parametrize(
    ("waiting", "queries", "limits", "minimums"),
    [
        ((pending(NEEDED),), 0, {}, {}),
        ((pending(ABOVE), pending(NEEDED)), 1, {"cpu": "10", "memory": "32Gi"}, {"cpu": "2"}),
    ],
    ids=["quota", "limits"],
)
def test_what_is_read_of_it(
    cluster: Cluster, waiting: tuple[KueueWorkload, ...], queries: int, limits: Raw, minimums: Raw,
    django_assert_num_queries: Any,
) -> None:  # fmt: skip
    queue = mirror.namespace_and_queue(cluster.pk, "team-a")["ClusterQueue"]
    with django_assert_num_queries(queries):
        found = local_queue_state(cluster.pk, "team-a", waiting, queue)
    assert found == LocalQueueState({"a100": 4, "h100-8x": 2}, "Can't admit: is stopped.", True, limits, minimums)


@pytest.mark.usefixtures("seen")
def test_nothing_is_read_while_nothing_waits(cluster: Cluster, django_assert_num_queries: Any) -> None:
    queue = mirror.namespace_and_queue(cluster.pk, "team-a")["ClusterQueue"]
    with django_assert_num_queries(0):
        assert local_queue_state(cluster.pk, "team-a", (ADMITTED,), queue) is None
    assert local_queue_state(cluster.pk, "team-b", (pending(NEEDED),), None) is None
