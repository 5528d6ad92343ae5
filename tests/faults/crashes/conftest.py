from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.client.kube import Kube
from devcluster.client.kube import Api
from tests.faults.crashes.stage import Stage, Zygote


@pytest.fixture
def crash_stage(
    transactional_db: None, services: dict[str, Any], admin: Api, kube_worker: Kube, unique: str, tmp_path: Path,
    clean_cluster: None,
) -> Iterator[Stage]:  # fmt: skip
    zygote = Zygote(tmp_path / "zygote.log")
    yield Stage(zygote, admin, kube_worker, services["kubeconfigs"]["worker"], unique, tmp_path)
    zygote.end()
