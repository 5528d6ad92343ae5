"""A hundred times as many nodes: the same number of queries, and figures that are a hundred times as large."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from catalog.classes.capacity.queries import capacities
from catalog.classes.capacity.types import Capacity
from catalog.models import GpuClass
from cluster.models import Cluster
from tenants.models import Membership
from tests.load import crowd
from tests.support.rows import make

PAGES = ("/catalog", "/api/v1/classes?limit=100", "/api/v1/capacity")
TIMES = 100


@pytest.fixture
def clusters(alice: User) -> dict[int, Cluster]:
    """Number of nodes → cluster; Alice owns a team that works in both."""
    found = {}
    for nodes in (crowd.KINDS_OF_NODES, TIMES * crowd.KINDS_OF_NODES):
        one = Cluster.objects.create(name=f"of-{nodes}", notebooks_domain="notebooks.localhost")
        team = make.tenant(one, slug=f"team-{nodes}", namespace="team-0")
        make.member(team, alice, Membership.Role.OWNER)
        for gpu_class in crowd.crowd(one, nodes=nodes):
            make.grant(team, gpu_class, units=1)
        found[nodes] = one
    return found


@pytest.fixture
def asked(alice: User, settings: Any) -> Callable[[Cluster, str], int]:
    client = Client()
    client.force_login(alice)

    def queries(cluster: Cluster, path: str) -> int:
        settings.CLUSTER_NAME = cluster.name
        client.get(path)  # what the first request reads once per process
        with CaptureQueriesContext(connection) as captured:
            answer = client.get(path)
        assert answer.status_code == 200
        return len(captured)

    return queries


@pytest.mark.timeout(600)
def test_ten_and_a_thousand_nodes_take_the_same_queries_and_tell_the_truth(
    clusters: dict[int, Cluster], asked: Callable[[Cluster, str], int]
) -> None:
    small, large = clusters.values()
    seen = {path: (asked(small, path), asked(large, path)) for path in PAGES}
    assert {path for path, (few, many) in seen.items() if few != many} == set(), seen

    few, many = by_slug(small), by_slug(large)
    assert few.keys() == many.keys()
    for slug, one in few.items():
        assert sums(many[slug]) == [units and units * TIMES for units in sums(one)], slug
        assert None not in sums(one)
        assert (many[slug].most_on_one_node, many[slug].largest_node) == (one.most_on_one_node, one.largest_node)
    assert sum(one.used or 0 for one in few.values()) > crowd.KINDS_OF_NODES


def sums(one: Capacity) -> list[int | None]:
    return [one.allocatable, one.used, one.free, one.unhealthy, one.cordoned]


def by_slug(cluster: Cluster) -> dict[str, Capacity]:
    classes = list(GpuClass.objects.filter(cluster=cluster))
    found = capacities(cluster, classes)
    return {one.slug: found[one.pk] for one in classes}
