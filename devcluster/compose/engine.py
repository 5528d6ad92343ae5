"""podman with everything of its own: images, containers and volumes below one folder, its networks and packet filter
rules in the network namespace of the real node, its processes in a process namespace that ends with the first of them.

So neither containers nor image names meet those of another podman on the machine. The images of this user's podman can
be read as a base, not changed. Health checks are run by `is_healthy`: podman leaves them to timers of systemd, which a
machine of a CI does not have.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from devcluster.node import machine
from devcluster.node.machine import PATH, NodeNamespaces
from devcluster.processes.console import UserError, say
from devcluster.processes.paths import ROOT
from devcluster.processes.supervisor import Command, Supervisor

# Beside what a real node needs: program → Debian package. podman looks for them in these folders.
NEEDED = {"netavark": "netavark", "aardvark-dns": "aardvark-dns", "catatonit": "catatonit"}
_FOLDERS = ("/usr/libexec/podman", "/usr/lib/podman", "/usr/local/libexec/podman", "/usr/bin")
FIRST = "compose"
COMPOSE = Path(sys.executable).with_name("podman-compose")


def missing() -> str:
    """Returns why containers of docker-compose.yml cannot run here, as a sentence; "" if they can."""
    if why := machine.missing():
        return why
    absent = [package for program, package in NEEDED.items() if not _helper(program)]
    if absent:
        return f"docker-compose.yml needs programs that are not installed: apt-get install {' '.join(absent)}."
    return ""


def can_run(_arguments: object) -> int:
    """`run.py can-run-compose`: exit code 0, or 1 and the reason as a sentence."""
    if code := machine.can_run(_arguments):
        return code
    if why := missing():
        say(why)
    return 1 if why else 0


def check() -> None:
    if why := missing():
        raise UserError(why, "Omit --compose, or run this as root on a machine that has them.")


@dataclass(frozen=True)
class Engine:
    """`variables`: of the compose file, as in .env."""

    supervisor: Supervisor
    namespaces: NodeNamespaces
    folder: Path
    variables: dict[str, str] = field(default_factory=dict)

    def start(self) -> None:
        self.folder.mkdir(exist_ok=True)
        for name, text in configuration(self.folder, bases=_images_of_user()).items():
            (self.folder / name).write_text(text)
        ready = self.folder / "ready"
        ready.unlink(missing_ok=True)
        first = self.namespaces.inside([sys.executable, "-m", "devcluster.compose", ready])
        self.supervisor.start(Command(FIRST, first, cwd=ROOT, ready=ready.exists, stop_signal=signal.SIGKILL))
        self.supervisor.until_ready(FIRST)

    @property
    def is_running(self) -> bool:
        return FIRST in self.supervisor.running and (self.folder / "ready").exists()

    def command(self, name: str, argv: list[object], *, has_machine_network: bool = False) -> Command:
        """`has_machine_network`: in the network of this machine instead of the node's, for downloads of a build.
        `setsid`: what a command leaves running, such as the name server of the networks, outlives its process group.
        """
        pid = self.supervisor.running[FIRST].pid
        network = [] if has_machine_network else [f"--net=/run/netns/{self.namespaces.namespace}"]
        enter = ["nsenter", *network, f"--mount=/proc/{pid}/ns/mnt", f"--pid=/proc/{pid}/ns/pid_for_children"]
        return Command(name, [*enter, "setsid", "--wait", *argv], env=self._environment())

    def run(self, name: str, argv: list[object], *, within_s: float = 120.0, has_machine_network: bool = False) -> Path:
        """Returns the log. Raises UserError with its last lines if the command fails."""
        command = self.command(name, argv, has_machine_network=has_machine_network)
        ran = self.supervisor.run(command, within_s=within_s)
        if ran.process.returncode:
            raise UserError(f"{name} failed. Its last lines:\n{ran.last_lines(40)}", f"Full log: {ran.log}.")
        return ran.log

    def asked(self, *arguments: object, within_s: float = 60.0) -> subprocess.CompletedProcess[str]:
        """The answer of podman to a question; without one in time, the exit code is 124. `timeout` runs beside podman:
        what is killed here has left its child in the namespaces.
        """
        command = self.command("podman", ["timeout", "--kill-after=5", within_s, "podman", *arguments])
        argv = [str(word) for word in command.argv]
        env = command.env
        return subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    def is_healthy(self, container: str) -> bool:
        done = self.asked("healthcheck", "run", container)
        return done.returncode == 0 and not done.stdout.strip()

    def inspected(self, container: str, template: str) -> str:
        return self.asked("inspect", "--type", "container", "--format", template, container).stdout.strip()

    def _environment(self) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("CONTAINER", "COMPOSE_"))}
        own = {
            "PATH": PATH,
            "CONTAINERS_CONF": str(self.folder / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(self.folder / "storage.conf"),
            "CONTAINERS_REGISTRIES_CONF": str(self.folder / "registries.conf"),
            # Otherwise podman asks systemd for a timer, and does not start a container with a health check without one.
            "DISABLE_HC_SYSTEMD": "true",
        }
        return {**kept, **own, **self.variables}


def configuration(folder: Path, *, bases: str) -> dict[str, str]:
    """Files by name. `bases`: the folder of the images that can be read. Runtime and limits: see
    devcluster/node/images.py. Names without a registry are Docker's, as for Docker. A lost answer of
    the name server, which reads its names again at each start of a container, costs 1 s instead of 5: as long as web
    waits for a connection to the database.
    """
    text = json.dumps  # strings of JSON are strings of TOML
    return {
        "containers.conf": f"""[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
dns_options = ["timeout:1", "attempts:4"]
init_path = {text(_helper("catatonit"))}
log_driver = "k8s-file"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "netavark"
network_config_dir = {text(str(folder / "networks"))}
""",
        "storage.conf": f"""[storage]
driver = "overlay"
graphroot = {text(str(folder / "store"))}
runroot = "/run/podman-store"
[storage.options]
additionalimagestores = [{text(bases)}]
""",
        "registries.conf": 'unqualified-search-registries = ["docker.io"]\n',
    }


def _images_of_user() -> str:
    asked = ["podman", "info", "--format", "{{.Store.GraphRoot}}"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False, env={**os.environ, "PATH": PATH})
    if done.returncode:
        raise UserError(f"podman does not work here: {done.stderr.strip()}", "Omit --compose on this machine.")
    return done.stdout.strip()


def _helper(program: str) -> str:
    return shutil.which(program, path=os.pathsep.join(_FOLDERS)) or ""
