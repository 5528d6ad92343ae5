"""Ends the processes that a killed supervisor leaves. Started by `processes.Supervisor`; uses only the standard
library.

The supervisor writes `+ <process group> <signal>` when a child starts, and `- <process group>` when it has ended. When
the pipe closes, however the supervisor ended, the remaining groups get their signal, and SIGKILL after PATIENCE_S.
Parent-death signals reach only direct children; the reaper also reaches the descendants in their process groups.
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
