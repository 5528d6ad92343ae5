"""A portal of one release, whose processes are replaced one after the other by those of another release.

As `kubectl apply` of a new release does with the Deployments of deploy/portal: the Job of the migrations, and for each
process a new pod that must be ready before the old one ends.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from devcluster.processes.paths import ROOT
from devcluster.processes.ports import free_port
from devcluster.processes.supervisor import Command, Supervisor
from devcluster.services.portal import Portal
from tests.load.upgrade.traffic import Service

# preStop of web and doors: until then the endpoint of an ending pod may still get connections.
PRE_STOP_S = 5.0
ROLES = ("watcher", "worker", "beat", "doors", "web")


@contextmanager
def release(revision: str, folder: Path) -> Iterator[Path]:
    """The tree of a revision of this repository."""
    tree = folder / "release"
    git = ["git", "-C", str(ROOT), "worktree"]
    subprocess.run([*git, "add", "--detach", "--quiet", str(tree), revision], check=True)
    try:
        yield tree
    finally:
        subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def last_release() -> str:
    """The newest tag; without tags this revision, which changes no schema."""
    log = ["git", "-C", str(ROOT), "describe", "--tags", "--abbrev=0"]
    return subprocess.run(log, capture_output=True, text=True).stdout.strip() or "HEAD"


@dataclass
class Rollout:
    """One process of each role, and the gateway in front of the Services of web and doors."""

    supervisor: Supervisor
    portal: Portal
    web: Service = field(default_factory=Service)
    doors: Service = field(default_factory=Service)
    _running: dict[str, str] = field(default_factory=dict)
    _started: int = 0

    def __post_init__(self) -> None:
        self.portal = replace(self.portal, ports={**self.portal.ports, "web": self.web.port, "doors": self.doors.port})

    def start_gateway(self) -> None:
        self.supervisor.start(next(one for one in self.portal.commands() if one.name == "gateway"))
        self.supervisor.until_ready("gateway")

    def manage(self, tree: Path, *argv: str) -> None:
        self._run(
            Command("manage", [sys.executable, "manage.py", *argv], env=self.portal.environment("seed"), cwd=tree)
        )

    def seed(self, tree: Path, what: str) -> None:
        self._run(replace(self.portal.seed(what), cwd=tree))

    def roll(self, role: str, tree: Path) -> None:
        """Starts the process of this role from a release; when it is ready, ends the one before."""
        self._started += 1
        ports = {**self.portal.ports, role: free_port(), f"{role}-internal": free_port()}
        at = replace(self.portal, ports=ports)
        command = next(one for one in at.commands() if one.name == role)
        name = f"{role}-{self._started}"
        # Each pod of beat has a file of its own.
        env = {**(command.env or {}), "BEAT_SCHEDULE_FILE": str(self.portal.state / name)}
        self.supervisor.start(replace(command, name=name, cwd=tree, env=env, stop_within_s=35))
        self.supervisor.until_ready(name)
        service = {"web": self.web, "doors": self.doors}.get(role)
        if service is not None:
            service.backend = ports[role]
        if before := self._running.get(role):
            if service is not None:
                threading.Event().wait(PRE_STOP_S)
            self.supervisor.stop(before)
        self._running[role] = name

    def _run(self, command: Command) -> None:
        ran = self.supervisor.run(command, within_s=300)
        assert ran.process.returncode == 0, ran.log.read_text()


def pods_of(found: list[dict[str, Any]]) -> dict[str, str]:
    """Those of runs that hold units, by UID: namespace and name."""
    return {
        pod["metadata"]["uid"]: f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        for pod in found
        if pod["metadata"].get("labels", {}).get("app.kubernetes.io/managed-by") == "gpu-portal"
        and pod["status"].get("phase") == "Running"
        and "deletionTimestamp" not in pod["metadata"]
    }
