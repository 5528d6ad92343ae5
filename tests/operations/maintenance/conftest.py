"""Nodes of their own, and a class of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from accounts.models import User
from catalog.models import GpuClass
from cluster.client.kube import Kube
from cluster.models import Cluster
from devcluster.client.kube import Api
from devcluster.kubelet.mig_manager import MigManager
from tenants.models import Namespace, Tenant
from tests.operations.maintenance.lab import OWN, Lab, class_of_own_nodes, nodes_of_their_own


@pytest.fixture
def lab(admin: Api, cluster: Cluster, kube_worker: Kube, olga: User, unique: str, watcher: None) -> Iterator[Lab]:
    name = f"maintained-{unique}"
    with nodes_of_their_own(admin, cluster, kube_worker, olga, names=[name], own=unique) as found:
        yield found[name]


@pytest.fixture
def two_nodes(
    admin: Api, cluster: Cluster, kube_worker: Kube, olga: User, unique: str, watcher: None
) -> Iterator[dict[str, Lab]]:
    names = [f"maintained-{unique}-{number}" for number in (1, 2)]
    with nodes_of_their_own(admin, cluster, kube_worker, olga, names=names, own=unique) as found:
        yield found


@pytest.fixture
def manager(admin: Api, unique: str) -> Iterator[MigManager]:
    """Of all nodes of this test, which have to exist before."""
    with MigManager(admin, labels=f"{OWN}={unique}", pause_s=0.1) as found:
        yield found


@pytest.fixture
def own(
    team_a: Tenant, namespace_a: Namespace, kube_worker: Kube, unique: str, two_nodes: object, clean_cluster: None
) -> GpuClass:
    """A class of two nodes, with more quota than they have units."""
    return class_of_own_nodes(namespace_a, team_a, kube_worker, own=unique, units=12)
