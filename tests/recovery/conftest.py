"""Worker, beat and watcher as processes on their own PostgreSQL and Redis; faults by proxies and signals."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from devcluster.client.kube import Api
from devcluster.faults.api_proxy import ApiProxy
from devcluster.processes.ports import free_port
from devcluster.processes.supervisor import Command, Supervisor
from devcluster.services import postgres, redis
from tests.recovery.portal import ROOT, Portal
from tests.support.cluster.removal import remove_from_cluster

FIRST_SYNC_WITHIN_S = 60


@pytest.fixture(scope="module")
def portal(services: dict[str, Any], admin: Api, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Portal]:
    state = tmp_path_factory.mktemp("recovery")
    unique = hashlib.sha256(f"recovery {os.getpid()}".encode()).hexdigest()[:8]
    # PostgreSQL, started as root, runs as another user, who needs access to its data.
    state.chmod(0o755)
    with (
        Supervisor(state / "log") as supervisor,
        ApiProxy(services["kubeconfigs"]["worker"], state) as proxy,
    ):
        prefix, programs, data = postgres.prepare(supervisor, state)
        with (data / "pg_hba.conf").open("a") as allowed:
            # Processes on another host (test_vanished.py). It listens on loopback only.
            allowed.write("host all all samenet scram-sha-256\n")
        port = free_port()
        # Durable settings: committed rows have to survive the crash.
        supervisor.start(postgres.command(prefix, programs, data, state=state, port=port, unsafe=False))
        command, redis_url = redis.command(state, free_port({port}))
        supervisor.start(command)
        supervisor.until_ready("postgres", "redis")
        database_url = postgres.ensure_database(postgres.url(state, port), "portal")
        env = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.recovery.settings",
            "DATABASE_URL": database_url,
            "REDIS_URL": redis_url,
            "BEAT_SCHEDULE_FILE": str(state / "beat"),
            "LOG_LEVEL": "INFO",
        }
        found = Portal(supervisor, proxy, admin, database_url, redis_url, data, env, f"a100-{unique}")
        found.run("manage.py", "migrate", "--noinput", "-v0")
        found.run("-m", "tests.recovery.provision", "cluster", f"gpu-portal-{unique}", found.slug)
        celery = [sys.executable, "-m", "celery", "-A", "portal"]
        worker = [*celery, "worker", "-P", "prefork", "-Q", "people,background", "-c", "2", "--without-mingle"]
        as_worker = env | {"PORTAL_KUBECONFIG": str(proxy.kubeconfig), "DATABASE_CONN_MAX_AGE": "300"}
        as_watcher = env | {"PORTAL_KUBECONFIG": services["kubeconfigs"]["watcher"]}
        watch = [sys.executable, "manage.py", "watch_cluster"]
        supervisor.start(Command("worker", worker, env=as_worker, cwd=ROOT, stop_within_s=10))
        supervisor.start(Command("beat", [*celery, "beat"], env=env, cwd=ROOT, stop_within_s=10))
        supervisor.start(Command("watcher", watch, env=as_watcher, cwd=ROOT, stop_within_s=10))
        yield found
    remove_from_cluster(admin, unique)
