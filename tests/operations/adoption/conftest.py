from __future__ import annotations

import pytest

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import Pool
from cluster.client.kube import Kube
from cluster.models import Cluster
from devcluster.client.kube import Api
from operations.models import Adoption
from portal.core.due import Deadline
from tenants.provisioning import reconcile as provisioning_reconcile
from tests.operations.adoption import messy
from tests.operations.adoption.adopting import propose, work
from tests.support.rows import mirrored
from tests.support.waiting import wait_until


@pytest.fixture
def operator(olga: User) -> Actor:
    return Actor(olga, via="page")


@pytest.fixture
def one(admin: Api, cluster: Cluster, alice: User, operator: Actor, kube_worker: Kube, unique: str) -> Adoption:
    """A namespace with a bare pod and labels of its own, proposed and read. No watcher: its place in the mirror is
    written by hand.
    """
    name = f"messy-{unique}"
    admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": messy.LABELS[1]}})
    admin.create(messy.thing("Pod"), namespace=name)
    wait_until(lambda: admin.find("v1/configmaps", "kube-root-ca.crt", namespace=name) is not None)
    wait_until(lambda: admin.find("v1/serviceaccounts", "default", namespace=name) is not None)
    seen = {"Namespace": [admin.get("v1/namespaces", name)], "Pod": admin.list("v1/pods", namespace=name)}
    mirrored.seen(cluster, **seen)
    provisioning_reconcile.reconcile_pool(Pool.objects.create(cluster=cluster), Deadline(), kube=kube_worker)
    row = propose(cluster, name, alice, operator)
    work(row, kube_worker)
    return row
