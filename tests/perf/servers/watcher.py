"""A watcher of the benchmark's own, as in production, on the database that this process is connected to."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from devcluster.processes.paths import ROOT

COMES_WITHIN_S = 300.0


@contextlib.contextmanager
def watcher(kubeconfig: str) -> Iterator[int]:
    """Yields its process id."""
    environment = {**os.environ, "PORTAL_KUBECONFIG": kubeconfig, "LOG_LEVEL": "WARNING"}
    command = [sys.executable, "manage.py", "watch_cluster"]
    with tempfile.TemporaryFile() as log:
        process: subprocess.Popen[Any] = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
        try:
            yield process.pid
        finally:
            process.terminate()
            process.wait(15)


def until(true: Callable[[], bool], what: str) -> None:
    deadline, pause = time.monotonic() + COMES_WITHIN_S, threading.Event()
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} did not come within {COMES_WITHIN_S:.0f} s")
        pause.wait(0.1)
