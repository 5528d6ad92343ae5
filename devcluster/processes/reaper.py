"""Ends the processes that a killed supervisor leaves. Started by `processes.Supervisor`; standard library only.

The supervisor writes `+ <process group> <signal>` for a process that began and `- <process group>` for one that ended.
When the pipe closes, however the supervisor ended, the groups still listed get their signal and, if they do not end,
SIGKILL. Parent-death signals reach only direct children; the reaper also reaches their children.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress

PATIENCE_S = 5.0


def main() -> None:
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    groups: dict[int, int] = {}
    for line in sys.stdin:
        verb, group, *rest = line.split()
        if verb == "+":
            groups[int(group)] = int(rest[0])
        else:
            groups.pop(int(group), None)
    end(groups)


def end(groups: dict[int, int]) -> None:
    for group, gently in groups.items():
        _signal(group, gently)
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and any(_alive(group) for group in groups):
        time.sleep(0.05)
    for group in groups:
        _signal(group, signal.SIGKILL)


def _signal(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


if __name__ == "__main__":
    main()
