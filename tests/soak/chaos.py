"""24 workers, each dying at random before and after it touches the cluster, for five minutes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from catalog.models import GpuClass
from cluster.client.kube import Kube
from cluster.models import Cluster
from devcluster.client.kube import Api
from tests.load import chaos

SECONDS = float(os.environ.get("SOAK_SECONDS", "300"))


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("clean_cluster")
def test_24_dying_workers(
    services: dict[str, Any],
    admin: Api,
    kube_worker: Kube,
    cluster: Cluster,
    a100: GpuClass,
    unique: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    world = chaos.build_world(cluster=cluster, gpu_class=a100, teams=12, kube=kube_worker, unique=unique)
    told = chaos.run(
        world,
        admin=admin,
        kubeconfig=services["kubeconfigs"]["worker"],
        log=tmp_path / "workers.log",
        workers=24,
        death_rate=0.05,
        for_s=SECONDS,
        deaths=int(SECONDS / 10),
    )
    with capsys.disabled():
        print(f"\nin {SECONDS:.0f} s: {told}")
    assert (told["overlap"], told["crashed"]) == (0, 0)
