"""Prometheus and promtool, built once per user."""

from __future__ import annotations

import pytest

from devcluster.controlplane import programs
from devcluster.controlplane.programs import Programs
from devcluster.processes.supervisor import Supervisor


@pytest.fixture(scope="session")
def monitoring(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    with Supervisor(tmp_path_factory.mktemp("monitoring")) as supervisor:
        return programs.find_or_build(supervisor, programs.MONITORING)
