"""Runs an application under the server of doors or web, as in production except for its address, and as one process, so
that its cost is that of one core.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devcluster.processes.paths import ROOT
from devcluster.processes.ports import free_port
from portal.web.admission.gate import THREADS

DOORS, WEB = "portal.asgi:application", "portal.wsgi:application"
STARTS_WITHIN_S = 30.0


@dataclass(frozen=True)
class Served:
    port: int
    pid: int

    @property
    def cpu_s(self) -> float:
        """Processor time in seconds until now."""
        after_name = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, after_name[11:13])) / os.sysconf("SC_CLK_TCK")

    @property
    def resident_kib(self) -> int:
        return status_kib(self.pid, "VmRSS")


@contextlib.contextmanager
def served(application: str = DOORS, *, cores: Collection[int] = (), **own: str) -> Iterator[Served]:
    """Runs uvicorn, as doors does. Answers /livez. `own`: extra environment. Bound to `cores`, if any."""
    command = ["-m", "uvicorn", application, "--no-access-log", "--timeout-keep-alive", "75"]
    command += ["--timeout-graceful-shutdown", "3", "--log-level", "warning", "--port"]
    with _running(command, "", cores, own) as found:
        yield found


@contextlib.contextmanager
def served_by_gunicorn(application: str = WEB, *, cores: Collection[int] = (), **own: str) -> Iterator[Served]:
    """The same with gunicorn, as web, with the threads of one of its processes. `pid` is the worker's."""
    command = ["-m", "gunicorn", application, "--workers", "1", "--threads", str(THREADS), "--keep-alive", "75"]
    # The portal's own configuration handles Django after a fork, which the bare application does not need.
    config = "gunicorn.conf.py" if application == WEB else os.devnull
    command += ["--config", config, "--no-control-socket", "--log-level", "warning", "--bind"]
    with _running(command, "127.0.0.1:", cores, own) as found:
        (worker,) = Path(f"/proc/{found.pid}/task/{found.pid}/children").read_text().split()
        yield Served(found.port, int(worker))


@contextlib.contextmanager
def _running(command: list[str], host: str, cores: Collection[int], own: Mapping[str, str]) -> Iterator[Served]:
    port = free_port()
    environment = {**os.environ, "DATABASE_POOL": "true", "LOG_LEVEL": "WARNING", **own}
    command = [sys.executable, *command, f"{host}{port}"]
    with tempfile.TemporaryFile() as log:
        process: subprocess.Popen[Any] = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
        if cores:
            os.sched_setaffinity(process.pid, cores)
        try:
            _await(port, process)
            yield Served(port, process.pid)
        finally:
            process.terminate()
            process.wait(15)


def status_kib(pid: int, name: str) -> int:
    """VmRSS: resident now; VmHWM: the peak."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def _await(port: int, process: subprocess.Popen[Any]) -> None:
    deadline, pause = time.monotonic() + STARTS_WITHIN_S, threading.Event()
    while time.monotonic() < deadline and process.poll() is None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        with contextlib.suppress(OSError):
            connection.request("GET", "/livez")
            if connection.getresponse().status == 200:
                return
        connection.close()
        pause.wait(0.1)
    raise TimeoutError(f"{process.args} did not start within {STARTS_WITHIN_S:.0f} s")
