"""The Due protocol while workers are killed, short form; `run.py soak chaos` runs 24 workers for minutes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from catalog.models import GpuClass
from cluster.client.kube import Kube
from cluster.models import Cluster
from devcluster.client.kube import Api
from tests.load import chaos


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("clean_cluster")
def test_rows_settle_and_the_cluster_agrees_whoever_died(
    services: dict[str, Any],
    admin: Api,
    kube_worker: Kube,
    cluster: Cluster,
    a100: GpuClass,
    unique: str,
    tmp_path: Path,
) -> None:
    world = chaos.build_world(cluster=cluster, gpu_class=a100, teams=3, kube=kube_worker, unique=unique)
    told = chaos.run(
        world,
        admin=admin,
        kubeconfig=services["kubeconfigs"]["worker"],
        log=tmp_path / "workers.log",
        workers=4,
        death_rate=0.08,
        for_s=5,
        deaths=6,
    )
    assert (told["overlap"], told["crashed"]) == (0, 0), (tmp_path / "workers.log").read_text()[-3000:]
