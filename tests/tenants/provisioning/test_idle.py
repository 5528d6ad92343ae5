"""A namespace without drift costs one cluster read per reconcile. A minute of 1,000 of them: `run.py soak idle`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from catalog.models import GpuClass, Pool
from cluster.client.kube import Kube
from cluster.models import Cluster
from devcluster.faults.api_proxy import ApiProxy
from portal.core.due import Deadline
from tenants.provisioning import reconcile, steps
from tests.support.rows import make


@pytest.fixture
def proxy(services: dict[str, Any], tmp_path: Path) -> Iterator[ApiProxy]:
    with ApiProxy(services["kubeconfigs"]["worker"], tmp_path) as proxy:
        yield proxy


@pytest.mark.usefixtures("clean_cluster")
def test_looking_again_writes_nothing_and_lists_nothing(
    proxy: ApiProxy, cluster: Cluster, a100: GpuClass, unique: str
) -> None:
    kube = Kube(str(proxy.kubeconfig))
    pool = Pool.objects.create(cluster=cluster)
    reconcile.reconcile_pool(pool, Deadline(), kube=kube)
    rows = []
    for number in range(2):
        team = make.tenant(cluster, slug=f"idle-{number}", namespace=f"idle-{number}-{unique}")
        make.grant(team, a100, units=1)
        rows.append(team.namespaces.get())
        steps.work_on_namespace(rows[-1], Deadline(), kube=kube)
    before = len(proxy.calls())
    for row in rows:
        steps.work_on_namespace(row, Deadline(), kube=kube)
    reconcile.reconcile_pool(pool, Deadline(), kube=kube)
    asked = [(done.call.verb, done.call.resource, done.call.name) for done in proxy.calls()[before:]]
    assert asked == [("get", "clusterqueues", row.name) for row in rows]
