"""Processor time, memory and open files of processes of this machine with all of their children."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def cpu_s(pids: Iterable[int]) -> float:
    """Seconds until now, with the time of children that have ended. Threads belong to their process."""
    return sum(_ticks(pid) for root in pids for pid in _with_children(root)) / TICKS_PER_S


def resident_mib(pid: int) -> float:
    """Of the process and its children; memory that they share counts for each."""
    return sum(_resident_kib(one) for one in _with_children(pid)) / 1024


def open_files(pid: int) -> int:
    """Of the process and its children: files, sockets and pipes."""
    return sum(len(list(Path(f"/proc/{one}/fd").glob("*"))) for one in _with_children(pid))


@contextlib.contextmanager
def stopped(pids: Iterable[int]) -> Iterator[None]:
    """For the time in which another one is measured that they would disturb."""
    found = list(pids)
    for pid in found:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in found:
            os.kill(pid, signal.SIGCONT)


def _resident_kib(pid: int) -> int:
    with suppress(FileNotFoundError, ProcessLookupError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
    return 0


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
