"""How many processor cores the local processes of each notebook use.

The runner marks every process of a notebook with the pod's uid (devcluster/notebooks/container.py).
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from devcluster.notebooks.container import MARK

# Two looks in a shorter time are one: the kernel counts in hundredths of a second.
LEAST_S = 1.0
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_MARK = f"{MARK}=".encode()


class ProcessorUse:
    """One sample per call of `cores`: the mean since the call before."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._used: dict[tuple[str, int, str], float] = {}  # seconds, by pod uid, process id and its start
        self._at = 0.0
        self._cores: dict[str, float] = {}

    def cores(self) -> Mapping[str, float]:
        """By pod uid. A process that is seen for the first time counts from its next sample."""
        now = time.monotonic()
        if now - self._at < LEAST_S:
            return self._cores
        used = self._read()
        found: dict[str, float] = defaultdict(float)
        for key, seconds in used.items():
            found[key[0]] += (seconds - self._used.get(key, seconds)) / (now - self._at)
        self._used, self._at, self._cores = used, now, dict(found)
        return self._cores

    def _read(self) -> dict[tuple[str, int, str], float]:
        found: dict[tuple[str, int, str], float] = {}
        for entry in self._proc.iterdir():
            if not entry.name.isdigit():
                continue
            with suppress(OSError):  # it has ended, or is another user's
                uid = _pod_uid((entry / "environ").read_bytes())
                if uid:
                    # The name of the program, in parentheses, may contain spaces.
                    fields = (entry / "stat").read_text().rpartition(")")[2].split()
                    found[uid, int(entry.name), fields[19]] = (int(fields[11]) + int(fields[12])) / TICKS_PER_S
        return found


def _pod_uid(environment: bytes) -> str:
    marks = [part for part in environment.split(b"\0") if part.startswith(_MARK)]
    return marks[0].rpartition(b"|")[2].decode() if marks else ""
