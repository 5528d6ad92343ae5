"""Two nodes of their own, and a class of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass
from cluster.client.kube import Kube
from cluster.models import Cluster
from devcluster.client.kube import Api
from tenants.models import Namespace, Tenant
from tests.operations.maintenance.lab import DyingKube, Lab
from tests.support.cluster.worker import provision
from tests.support.rows import make

OWN = "test.example/own-node"


@pytest.fixture
def two_nodes(
    admin: Api, cluster: Cluster, kube_worker: Kube, olga: User, unique: str, watcher: None
) -> Iterator[dict[str, Lab]]:
    names = [f"maintained-{unique}-{number}" for number in (1, 2)]
    by = Actor(olga, via="page")
    labs = {name: Lab(admin, cluster, DyingKube(kube_worker), by, name, labels={OWN: unique}) for name in names}
    for lab in labs.values():
        lab.add()
    try:
        yield labs
    finally:
        for lab in labs.values():
            lab.remove()


@pytest.fixture
def own(
    cluster: Cluster, team_a: Tenant, namespace_a: Namespace, kube_worker: Kube, unique: str, two_nodes: object,
    clean_cluster: None,
) -> GpuClass:  # fmt: skip
    """A class of these nodes, with more quota than they have units."""
    found = make.gpu_class(cluster, slug=f"own-{unique}", name="Own", node_labels={OWN: unique})
    make.grant(team_a, found, units=12)
    provision(namespace_a, kube_worker)
    return found
