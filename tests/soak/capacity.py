"""Capacity equals a sum over the API server's own lists at 200 moments of a cluster that keeps changing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from cluster.models import Cluster
from devcluster.client.kube import Api
from tests.load.capacity.node_churn import churning
from tests.support.processes.watchers import Watchers, eventually, is_current

MOMENTS = int(os.environ.get("SOAK_MOMENTS", "200"))
SEED = int(os.environ.get("SOAK_SEED", "2026"))


@pytest.mark.django_db(transaction=True)
def test_200_moments(
    services: dict[str, Any],
    cluster: Cluster,
    admin: Api,
    unique: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    watchers = Watchers(services["kubeconfigs"]["watcher"], tmp_path)
    differences = 0
    used = {"both": 0, "any-device": 0, "cores": 0}
    try:
        with churning(admin, cluster, unique, seed=SEED) as churn:
            watchers.start()
            eventually(lambda: is_current(cluster), watchers, within_s=240)
            for _ in range(MOMENTS):
                churn.happen()
                ours, theirs = churn.compare()
                differences += ours != theirs
                for word in used:
                    used[word] += theirs[f"{word}-{unique}"].used or 0
    finally:
        watchers.end()
    with capsys.disabled():
        print(f"\n{MOMENTS} moments, seed {SEED}: {differences} differences; units in use seen: {used}")
    assert differences == 0
    assert min(used.values()) > MOMENTS / 10, used
