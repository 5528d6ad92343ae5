"""What a benchmark says of the machine that it ran on, and whether that machine was quiet enough to judge.

Busy is the part of all processors' time that was not idle, from /proc/stat: time that a hypervisor gave to others
(`steal`) counts as busy, since it is missing too. Waiting for a disk counts as idle, as the kernel counts it.
"""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path
from typing import Any

LOOKED_FOR_S = 3.0
# One process of a desktop or a daemon stays below; a build or a test run does not.
BUSY_AT_MOST = 0.15


def machine() -> dict[str, Any]:
    """Takes three seconds. Returns the content of one line: processors, memory, load, and the busy part before."""
    before = _ticks()
    time.sleep(LOOKED_FOR_S)
    busy = busy_part(before, _ticks())
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "processors": os.cpu_count(),
        "model": _model(),
        "memory_gib": round(memory_gib, 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load_before": round(os.getloadavg()[0], 2),
        "busy_before": round(busy, 3),
        "quiet": busy <= BUSY_AT_MOST,
    }


def busy_part(before: list[int], after: list[int]) -> float:
    """From two readings of the line `cpu` of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal."""
    passed = [end - start for start, end in zip(before, after, strict=True)]
    idle = passed[3] + passed[4]
    return 1 - idle / max(1, sum(passed))


def _ticks() -> list[int]:
    return [int(one) for one in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]


def _model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
