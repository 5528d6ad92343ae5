"""The portal's own worker, beat and watcher, for journeys through all of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.models import Cluster
from devcluster.processes.supervisor import Command, Supervisor
from tests.e2e.journeys.portal_processes import Portal
from tests.plugin import process_environment

ROOT = Path(__file__).parents[3]


@pytest.fixture
def portal(transactional_db: None, cluster: Cluster, services: dict[str, Any], tmp_path: Path) -> Iterator[Portal]:
    mail = tmp_path / "mail"
    env = {
        "EMAIL_URL": f"filemail:///{mail}",
        "BEAT_SCHEDULE_FILE": str(tmp_path / "beat"),
        "PYTHONUNBUFFERED": "1",
    }
    celery = [sys.executable, "-m", "celery", "-A", "portal"]
    worker = [*celery, "worker", "-P", "prefork", "-Q", "people,background", "-c", "2", "--without-mingle"]
    watcher = [sys.executable, "manage.py", "watch_cluster"]
    with Supervisor(tmp_path / "log") as supervisor:
        for name, command in (("worker", worker), ("watcher", watcher), ("beat", [*celery, "beat"])):
            config = services["kubeconfigs"].get(name)
            own = process_environment(name) | env | ({"PORTAL_KUBECONFIG": config} if config else {})
            supervisor.start(Command(name, command, env=own, cwd=ROOT, stops_with="portal"))
        yield Portal(supervisor, mail)
