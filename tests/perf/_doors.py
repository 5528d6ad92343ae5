"""An ASGI application under the server that the doors process runs under, as in production but for its address."""

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

from devcluster.processes import free_port
from devcluster.stack import ROOT

DOORS = "portal.asgi:application"
STARTS_WITHIN_S = 30.0


@dataclass(frozen=True)
class Served:
    port: int
    pid: int

    @property
    def resident_kib(self) -> int:
        return status_kib(self.pid, "VmRSS")


@contextlib.contextmanager
def served(application: str = DOORS, *, cores: Collection[int] = (), **own: str) -> Iterator[Served]:
    """Answers /livez. `own`: of its environment. Held to `cores`, if any."""
    port = free_port()
    environment: Mapping[str, str] = {**os.environ, "DATABASE_POOL": "true", "LOG_LEVEL": "WARNING", **own}
    command = [sys.executable, "-m", "uvicorn", application, "--port", str(port), "--no-access-log"]
    command += ["--timeout-keep-alive", "75", "--timeout-graceful-shutdown", "3", "--log-level", "warning"]
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
    """VmRSS: resident now; VmHWM: the most that ever was."""
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
