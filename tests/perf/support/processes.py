"""Processor time of processes of this machine with all of their children."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def cpu_s(pids: Iterable[int]) -> float:
    """Seconds until now, with the time of children that have ended. Threads belong to their process."""
    return sum(_ticks(pid) for root in pids for pid in _with_children(root)) / TICKS_PER_S


def _with_children(pid: int) -> Iterator[int]:
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with suppress(FileNotFoundError, ProcessLookupError):
            for child in (task / "children").read_text().split():
                yield from _with_children(int(child))


def _ticks(pid: int) -> int:
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0
    # utime, stime, and both of children that were waited for.
    return sum(map(int, after_name[11:15]))
