"""A Redis of the benchmark's own: no other process receives its messages."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from devcluster.processes.ports import free_port
from devcluster.processes.supervisor import Command
from devcluster.services import redis
from tests.perf.servers.watcher import until


@contextlib.contextmanager
def own_redis() -> Iterator[str]:
    """Yields its URL."""
    with tempfile.TemporaryDirectory() as state:
        command, url = redis.command(Path(state), free_port())
        process = subprocess.Popen([str(part) for part in command.argv], stdout=subprocess.DEVNULL)
        try:
            until(lambda: _answers(command), "Redis")
            yield url
        finally:
            process.terminate()
            process.wait(10)


def _answers(command: Command) -> bool:
    assert command.ready is not None
    try:
        return command.ready()
    except OSError:
        return False
