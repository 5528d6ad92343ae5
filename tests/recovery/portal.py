"""A portal in its own processes, which a test may kill."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import redis as redis_client

from cluster.manifests.names import PLAIN_RESOURCE
from devcluster.client.kube import Api
from devcluster.faults.api_proxy import ApiProxy
from devcluster.processes.ports import free_port
from devcluster.processes.supervisor import Command, Supervisor
from tests.support.waiting import wait_until

ROOT = Path(__file__).parent.parent.parent

RECOVERS_WITHIN_S = 90


@dataclass
class Portal:
    """The portal's background processes. Processes that die are started again, as by a service manager."""

    supervisor: Supervisor
    proxy: ApiProxy
    admin: Api
    database_url: str
    redis_url: str
    data: Path
    env: dict[str, str]
    slug: str

    def run(self, *arguments: str, exits: int = 0, **env: str) -> str:
        """Runs the command and returns the last line of its output; all of it if it fails as expected."""
        command = Command("step", [sys.executable, *arguments], env=self.env | env, cwd=ROOT)
        ran = self.supervisor.run(command, within_s=120)
        assert ran.process.returncode == exits, ran.log.read_text()
        if exits:
            return ran.log.read_text()
        return next(reversed(ran.log.read_text().splitlines()), "")

    def provision(self, name: str, units: int) -> None:
        self.run("-m", "tests.recovery.provision", "team", name, self.slug, str(units))

    @contextmanager
    def doors(self, **env: str) -> Iterator[int]:
        """Starts the process that serves streams, and returns its port."""
        argv = ["uvicorn", "portal.asgi:application", "--log-level", "warning", "--port"]
        with self._serving("doors", argv, "", env) as port:
            yield port

    @contextmanager
    def web(self, **env: str) -> Iterator[int]:
        argv = ["gunicorn", "portal.wsgi:application", "--workers", "2", "--threads", "630"]
        argv += ["--no-control-socket", "-b"]
        with self._serving("web", argv, "127.0.0.1:", env) as port:
            yield port

    @contextmanager
    def _serving(self, name: str, argv: list[str], host: str, env: dict[str, str]) -> Iterator[int]:
        port = free_port()

        def answers() -> bool:
            return socket.create_connection(("127.0.0.1", port), 1).close() is None

        command = Command(
            name,
            [sys.executable, "-m", *argv, f"{host}{port}"],
            env=self.env | {"ALLOWED_HOSTS": "*"} | env,
            cwd=ROOT,
            ready=answers,
            stop_within_s=10,
        )
        self.supervisor.start(command)
        self.supervisor.until_ready(name)
        try:
            yield port
        finally:
            self.supervisor.stop(name)

    # ---- faults of services ----------------------------------------------------------------------------------------

    def kill(self, name: str) -> None:
        """Kills the process and its children at once; then starts a new one."""
        running = self.supervisor.running[name]
        os.killpg(running.pid, signal.SIGKILL)
        running.process.wait(10)
        self.supervisor.stop(name)
        self.supervisor.start(running.command)

    def flush_redis(self) -> None:
        redis_client.Redis.from_url(self.redis_url).flushall()

    def crash_postgres(self) -> None:
        """An immediate shutdown: PostgreSQL comes back by crash recovery, which empties unlogged tables."""
        running = self.supervisor.running["postgres"]
        os.kill(int((self.data / "postmaster.pid").read_text().split()[0]), signal.SIGQUIT)
        running.process.wait(20)
        self.supervisor.stop("postgres")
        self.supervisor.start(running.command)
        self.supervisor.until_ready("postgres")

    # ---- reading state ---------------------------------------------------------------------------------------------

    def ask(self, statement: str, *parameters: Any) -> Any:
        """The first value of the first row; None while the database is away."""
        try:
            with psycopg.connect(self.database_url, connect_timeout=2) as connection:
                row = connection.execute(statement, parameters).fetchone()
        except psycopg.OperationalError:
            return None
        return row[0] if row else None

    def keep_alive(self) -> None:
        for running in self.supervisor.ended():
            self.supervisor.stop(running.command.name)
            self.supervisor.start(running.command)

    def wait(self, is_true: Callable[[], bool], *, what: str, within_s: float = RECOVERS_WITHIN_S) -> None:
        def step() -> bool:
            self.keep_alive()
            return is_true()

        wait_until(step, within_s=within_s, every_s=0.1, what=what, story=self.story)

    def story(self) -> str:
        return "\n".join(f"--- {name}\n{run.last_lines(8)}" for name, run in self.supervisor.running.items())

    def is_provisioned(self, name: str, units: int) -> bool:
        """As an independent client sees it: the queue is open with the granted units, and all other objects exist."""
        queue = self.admin.find("kueue.x-k8s.io/v1beta2/clusterqueues", name)
        if queue is None or queue["spec"].get("stopPolicy", "None") != "None":
            return False
        groups = queue["spec"].get("resourceGroups", [])
        cells = [cell for group in groups for flavor in group["flavors"] for cell in flavor["resources"]]
        # The other resource counts wake-ups of the queue.
        nominal = sum(int(cell["nominalQuota"]) for cell in cells if cell["name"] != PLAIN_RESOURCE)
        others = (
            ("v1/resourcequotas", "gpu-portal"),
            ("v1/limitranges", "gpu-portal"),
            ("kueue.x-k8s.io/v1beta2/localqueues", "gpu-portal"),
        )
        return nominal == units and all(self.admin.find(kind, one, namespace=name) for kind, one in others)

    def is_settled(self) -> bool:
        """No row is due, leased or behind its wanted generation."""
        waiting = """SELECT count(*) FROM tenants_namespace
                      WHERE due_at <= now() OR leased_until IS NOT NULL OR observed_generation <> generation
                         OR error_code <> ''"""
        return bool(self.ask(waiting) == 0)

    def is_mirrored(self, name: str) -> bool:
        """The mirror has the team's queue, and every kind is listed in the current epoch."""
        unlisted = """SELECT count(*) FROM cluster_mirrorkind k WHERE k.listed_at IS NULL
                          OR k.epoch NOT IN (SELECT epoch FROM cluster_mirrorepoch)"""
        seen = "SELECT count(*) FROM cluster_mirrorobject WHERE kind = 'ClusterQueue' AND name = %s"
        return bool(self.ask(seen, name) == 1 and self.ask(unlisted) == 0)
