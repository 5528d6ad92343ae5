"""The child processes of a process."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from devcluster.notebooks.container import MARK


def processes_of(uid: str) -> list[int]:
    """Ids of all processes that run for the pod."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if any(
                v.startswith(f"{MARK}=".encode()) and v.endswith(uid.encode()) for v in path.read_bytes().split(b"\0")
            ):
                found.append(int(path.parent.name))
    return found
