"""A class of the real node's devices, and images that exist there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from catalog.models import GpuClass, Image
from cluster.client.kube import Kube
from cluster.models import Cluster
from devcluster.node.configuration import LABELS
from devcluster.node.images import NOTEBOOK_IMAGE, PYTHON_IMAGE
from devcluster.node.registry import Registry
from tenants.models import Namespace, Tenant
from tests.support.cluster.worker import provision
from tests.support.rows import make
from tests.workloads.situations.real_node.written import HOSTS, REGISTRY
from workloads.launch.types import LaunchSpec


@pytest.fixture
def real(cluster: Cluster, unique: str) -> GpuClass:
    """GPUs of the real node. It has as many cores as this machine: pods wait for one another."""
    return make.gpu_class(
        cluster, slug=f"real-{unique}", name="Real", node_labels=LABELS, cpu_per_unit=1, memory_gib_per_unit=4
    )


@pytest.fixture
def job(real: GpuClass, team_a: Tenant, namespace_a: Namespace, kube_worker: Kube) -> LaunchSpec:
    make.grant(team_a, real, units=40)
    Image.objects.create(name="real", reference=PYTHON_IMAGE, kind="job")
    Image.objects.create(name="lab", reference=NOTEBOOK_IMAGE, kind="notebook")
    provision(namespace_a, kube_worker)
    return LaunchSpec(name="", kind="job", gpu_class=real.slug, units=1, image="real")


@pytest.fixture
def registry(services: dict[str, Any]) -> Iterator[Registry]:
    with Registry(services["real_node"]["address"]) as found:
        folder = Path(services["real_node"]["folder"])
        found.trust(folder, REGISTRY)
        # Nothing listens on the discard port.
        found.trust(folder, HOSTS["closed"], url=f"http://{services['real_node']['address']}:9")
        yield found


@pytest.fixture
def untrusted(services: dict[str, Any]) -> Iterator[Registry]:
    """Its certificate is one that the node knows no authority for: the API server's own."""
    pki = Path(services["state_dir"]) / "pki"
    with Registry(services["real_node"]["address"], certificate=(pki / "server.crt", pki / "server.key")) as found:
        found.trust(Path(services["real_node"]["folder"]), HOSTS["untrusted"])
        yield found
