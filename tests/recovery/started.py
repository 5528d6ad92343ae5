"""PostgreSQL of a portal's own, and its worker, beat and watcher as processes on it."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devcluster.client.kube import Api
from devcluster.faults.api_proxy import ApiProxy
from devcluster.faults.vanishing_host import NETWORK
from devcluster.processes.ports import free_port
from devcluster.processes.supervisor import Command, Supervisor
from devcluster.services import postgres, redis
from tests.recovery.portal import ROOT, Portal
from tests.support.cluster.removal import remove_from_cluster

SHORT = "tests.recovery.settings"
CELERY = [sys.executable, "-m", "celery", "-A", "portal"]


@dataclass(frozen=True)
class Servers:
    """`prefix`: before a program that refuses to run as root. `database_url`: of the owner."""

    supervisor: Supervisor
    prefix: list[str]
    state: Path
    data: Path
    port: int
    database_url: str


@contextmanager
def servers(state: Path) -> Iterator[Servers]:
    # PostgreSQL, started as root, runs as another user, who needs access to its data.
    state.chmod(0o755)
    with Supervisor(state / "log") as supervisor:
        prefix, programs, data = postgres.prepare(supervisor, state)
        with (data / "pg_hba.conf").open("a") as allowed:
            # Processes on another host (test_vanished.py). It listens on loopback only.
            allowed.write(f"host all all {NETWORK} scram-sha-256\n")
        port = free_port()
        # Durable settings: committed rows have to survive the crash.
        supervisor.start(postgres.command(prefix, programs, data, state=state, port=port, unsafe=False))
        supervisor.until_ready("postgres")
        url = postgres.ensure_database(postgres.url(state, port), "portal")
        yield Servers(supervisor, prefix, state, data, port, url)


@contextmanager
def processes(
    found: Servers,
    redis_url: str,
    *,
    services: dict[str, Any],
    admin: Api,
    urls: Mapping[str, str] | None = None,
    tasks: int = 2,
    settings: str = SHORT,
) -> Iterator[Portal]:
    """`urls`: DATABASE_URL of each process; the owner's by default. `tasks`: how many the worker does at once.
    `settings`: a module, by default with shorter intervals than those of production.
    """
    unique = hashlib.sha256(f"{found.state} {os.getpid()}".encode()).hexdigest()[:8]
    supervisor, state = found.supervisor, found.state
    with ApiProxy(services["kubeconfigs"]["worker"], state) as proxy:
        env = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": settings,
            "DATABASE_URL": found.database_url,
            "REDIS_URL": redis_url,
            "BEAT_SCHEDULE_FILE": str(state / "beat"),
            "LOG_LEVEL": "INFO",
        }

        def environment(name: str, **more: str) -> dict[str, str]:
            return env | {"DATABASE_URL": (urls or {}).get(name, found.database_url)} | more

        portal = Portal(supervisor, proxy, admin, found.database_url, redis_url, found.data, env, f"a100-{unique}")
        portal.run("manage.py", "migrate", "--noinput", "-v0")
        if urls:
            for name, url in urls.items():
                (state / f"database-{name}").write_text(url)
            portal.run("manage.py", "database_roles", *(f"{name}={state / f'database-{name}'}" for name in urls))
        portal.run("-m", "tests.recovery.provision", "cluster", f"gpu-portal-{unique}", portal.slug)
        worker = [*CELERY, "worker", "-P", "prefork", "-Q", "people,background", "-c", str(tasks), "--without-mingle"]
        as_worker = environment("worker", PORTAL_KUBECONFIG=str(proxy.kubeconfig), DATABASE_CONN_MAX_AGE="300")
        as_watcher = environment("watcher", PORTAL_KUBECONFIG=services["kubeconfigs"]["watcher"])
        watch = [sys.executable, "manage.py", "watch_cluster"]
        supervisor.start(Command("worker", worker, env=as_worker, cwd=ROOT, stop_within_s=10))
        supervisor.start(Command("beat", [*CELERY, "beat"], env=environment("beat"), cwd=ROOT, stop_within_s=10))
        supervisor.start(Command("watcher", watch, env=as_watcher, cwd=ROOT, stop_within_s=10))
        yield portal
    remove_from_cluster(admin, unique)


@contextmanager
def whole_portal(state: Path, *, services: dict[str, Any], admin: Api, settings: str = SHORT) -> Iterator[Portal]:
    """With PostgreSQL and Redis of its own. `settings`: as in `processes`."""
    with servers(state) as found:
        command, redis_url = redis.command(found.state, free_port({found.port}))
        found.supervisor.start(command)
        found.supervisor.until_ready("redis")
        with processes(found, redis_url, services=services, admin=admin, settings=settings) as portal:
            yield portal
