"""A stage for the fault matrix: the worker's client through a proxy that misbehaves on request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from catalog.models import GpuClass, Pool
from cluster.client.kube import Kube
from devcluster.client.kube import Api
from devcluster.faults.api_proxy import ApiProxy
from portal.core.due import Deadline
from tenants.provisioning import reconcile
from tests.faults.scenes import Stage


@pytest.fixture
def proxy(services: dict[str, Any], tmp_path: Path) -> Iterator[ApiProxy]:
    """In front of the API server, with the worker's rights."""
    with ApiProxy(services["kubeconfigs"]["worker"], tmp_path) as proxy:
        yield proxy


@pytest.fixture
def stage(a100: GpuClass, admin: Api, proxy: ApiProxy, unique: str, clean_cluster: None) -> Stage:
    found = Stage(a100, admin, proxy, Kube(str(proxy.kubeconfig)), unique)
    reconcile.reconcile_pool(Pool.objects.create(cluster=a100.cluster), Deadline(), kube=found.kube)
    return found
