"""A lock on a state directory, so that only one run uses it."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import IO

from devcluster.processes.console import UserError, note

# How long to wait for the lock. After a run was killed, its reaper keeps the lock while it ends the remaining
# processes.
PATIENCE_S = 15.0


def lock_state(state: Path) -> IO[str]:
    """Returns an open file, which is the lock. It is released when the last process that has the file open ends."""
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = (state / "lock").open("a+")
    deadline = time.monotonic() + PATIENCE_S
    waiting = False
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except OSError as error:
            if time.monotonic() > deadline:
                lock.seek(0)
                raise UserError(
                    f"Another run (process {lock.read().strip() or 'unknown'}) uses {state}.",
                    "Stop it with Ctrl-C in its terminal, or end that process; its data is kept.",
                ) from error
            if not waiting:
                waiting = True
                note(f"{state} is in use; waiting up to {PATIENCE_S:.0f} s for it")
            time.sleep(0.2)
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()
    return lock
