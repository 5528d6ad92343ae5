"""Worker, beat and watcher on the test's own database, killed by SIGKILL, also in the middle of a write."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devcluster.faults.api_proxy import ApiProxy
from devcluster.faults.rules import WRITES
from devcluster.processes.supervisor import Command, Supervisor
from tests.plugin import process_environment

ROOT = Path(__file__).parents[3]
# A step without a write: the worker is killed while idle.
WRITES_WITHIN_S = 5.0


@dataclass
class Processes:
    """The portal's background processes. `namespace`: the worker is killed at writes for it."""

    supervisor: Supervisor
    proxy: ApiProxy
    namespace: str

    def kill(self, name: str) -> None:
        """Kills the process and its children at once, then starts a new one, as a service manager does."""
        running = self.supervisor.running[name]
        os.killpg(running.pid, signal.SIGKILL)
        running.process.wait(10)
        self.supervisor.stop(name)
        self.supervisor.start(running.command)

    def kill_worker_at_a_write(self, *, nth: int, is_done: bool, during: Callable[[], object]) -> bool:
        """Kills the worker when its nth write has arrived, or when it `is_done` and not answered. Returns whether that
        happened.
        """
        reached, is_over = threading.Event(), threading.Event()

        def hold() -> None:
            reached.set()
            is_over.wait(60)

        rule = self.proxy.when(WRITES, namespace=self.namespace, nth=nth)
        (rule.call_after if is_done else rule.call_before)(hold)
        try:
            during()
            was_writing = reached.wait(WRITES_WITHIN_S)
            self.proxy.forget()
            self.kill("worker")
        finally:
            is_over.set()
        return was_writing

    def story(self) -> str:
        return "\n".join(f"--- {name}\n{run.last_lines(12)}" for name, run in self.supervisor.running.items())


@contextmanager
def started(services: dict[str, Any], directory: Path, *, namespace: str) -> Iterator[Processes]:
    celery = [sys.executable, "-m", "celery", "-A", "portal"]
    worker = [*celery, "worker", "-P", "prefork", "-Q", "people,background", "-c", "2", "--without-mingle"]
    watch = [sys.executable, "manage.py", "watch_cluster"]
    # Short leases and a quick sweep, as in the recovery tests: a dead worker's rows are claimed again in seconds.
    env = process_environment() | {
        "DJANGO_SETTINGS_MODULE": "tests.recovery.settings",
        "BEAT_SCHEDULE_FILE": str(directory / "beat"),
    }
    with (
        Supervisor(directory / "log") as supervisor,
        ApiProxy(services["kubeconfigs"]["worker"], directory) as proxy,
    ):
        as_worker = env | {"PORTAL_KUBECONFIG": str(proxy.kubeconfig), "DATABASE_CONN_MAX_AGE": "300"}
        as_watcher = env | {"PORTAL_KUBECONFIG": services["kubeconfigs"]["watcher"]}
        supervisor.start(Command("watcher", watch, env=as_watcher, cwd=ROOT, stop_within_s=1))
        supervisor.start(Command("worker", worker, env=as_worker, cwd=ROOT, stop_within_s=5))
        supervisor.start(Command("beat", [*celery, "beat"], env=env, cwd=ROOT, stop_within_s=5))
        yield Processes(supervisor, proxy, namespace)
