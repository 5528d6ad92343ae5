"""A local process in place of a container: it is started, its output is written to a log in CRI format, and it is ended
with all its descendants.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from devcluster.notebooks.container_inputs import ContainerInputs

ENTRY = Path(__file__).with_name("entry.py")
# An environment variable of every process that is started here: `<data directory>|<pod uid>`.
MARK = "DEVCLUSTER_NOTEBOOK"
STAND_INS = (
    "jupyter",
    "jupyter-lab",
    "jupyter-notebook",
    "start-notebook.py",
    "start-notebook.sh",
    "start-singleuser.py",
)


class Container:
    def __init__(
        self,
        inputs: ContainerInputs,
        *,
        address: str,
        home: Path,
        private: Path,
        log: Path,
        mark: str,
        on_exit: Callable[[], None],
    ) -> None:
        """Create it in a thread that lives as long as the container: the kernel kills the process when that thread
        ends.
        """
        self.mark = mark
        environment = inputs.environment | {
            "PATH": search_path(private.parent.parent),
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "JUPYTER_CONFIG_DIR": str(private / "config"),
            "JUPYTER_DATA_DIR": str(private / "data"),
            "JUPYTER_RUNTIME_DIR": str(private / "runtime"),
            "IPYTHONDIR": str(private / "ipython"),
            "DEVCLUSTER_ADDRESS": address,
            MARK: mark,
        }
        for directory in (home, private):
            directory.mkdir(parents=True, exist_ok=True)
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", ENTRY, "tie", str(os.getpid()), *inputs.argv],
            env=environment,
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._logger = threading.Thread(target=_copy, args=(self.process.stdout, log), daemon=True)
        self._logger.start()
        self.exited = threading.Event()
        threading.Thread(target=self._wait, args=(on_exit,), daemon=True).start()

    def code(self) -> int | None:
        """Returns the exit code as a kubelet reports it (128 + signal), or None while the process runs."""
        code = self.process.poll()
        return 128 - code if code is not None and code < 0 else code

    def ask_to_end(self) -> None:
        """Sends SIGTERM, only to the first process, as container runtimes do."""
        self.process.terminate()

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def end(self) -> None:
        """Kills all processes of the container, including kernels and terminals, which have sessions of their own."""
        self.kill()
        self.process.wait()
        kill_marked(self.mark)
        self._logger.join(timeout=5)

    def _wait(self, on_exit: Callable[[], None]) -> None:
        self.process.wait()
        self.exited.set()
        on_exit()


def search_path(data_dir: Path) -> str:
    return f"{data_dir}/bin:{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"


def write_stand_ins(data_dir: Path) -> None:
    """Writes scripts with the names of the commands in notebook images. They call `entry.py`."""
    (data_dir / "bin").mkdir(parents=True, exist_ok=True)
    for name in STAND_INS:
        script = data_dir / "bin" / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "{ENTRY}" jupyter {name} "$@"\n')
        script.chmod(0o755)


def kill_marked(prefix: str) -> list[int]:
    """Sends SIGKILL to every process of this user whose mark begins with `prefix`. Returns their process ids."""
    wanted = f"{MARK}={prefix}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with suppress(OSError):
            if any(part.startswith(wanted) for part in (entry / "environ").read_bytes().split(b"\0")):
                os.kill(int(entry.name), signal.SIGKILL)
                found.append(int(entry.name))
    return found


def _copy(output: IO[bytes], log: Path) -> None:
    """Copies the output as lines `<time> stdout F <text>`. Each line is written at once, for readers that follow the
    log.
    """
    with log.open("ab", buffering=0) as file:
        for line in output:
            stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")
            file.write(f"{stamp} stdout F ".encode() + line.rstrip(b"\r\n") + b"\n")
