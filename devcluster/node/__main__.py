"""The first process of the node's namespaces: mounts, then the programs of `node.json`, each with a log of its own.

It ends when one of them ends; the kernel then ends all others, the containers too. As first process it also collects
the ended processes that containers leave.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path


def main(folder: Path) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    _mounts(folder)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    programs: dict[int, str] = {}
    for name, argv in json.loads((folder / "node.json").read_text()).items():
        with (folder / "log" / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        programs[process.pid] = name
        if name == "containerd" and not _answers(folder / "containerd.sock", process):
            sys.stderr.write(f"containerd ended at its start; see {folder}/log/containerd.log\n")
            return 1
    while True:
        pid, status = os.wait()
        if pid in programs:
            code = os.waitstatus_to_exitcode(status)
            sys.stderr.write(f"{programs[pid]} ended with exit code {code}; see {folder}/log/{programs[pid]}.log\n")
            return 1


def _answers(listening: Path, process: subprocess.Popen[bytes]) -> bool:
    """Waits until the process listens, or has ended. kubelet ends if containerd does not answer at once."""
    while process.poll() is None:
        with socket.socket(socket.AF_UNIX) as probe, suppress(OSError):
            probe.connect(str(listening))
            return True
        time.sleep(0.02)
    return False


def _mounts(folder: Path) -> None:
    """Paths that kubelet, runc and the network plugins have built in point to the node's own folder."""
    subprocess.run(["mount", "--make-rshared", "/"], check=True)
    for own, path in (("lib", "/var/lib"), ("log", "/var/log")):
        (folder / own).mkdir(exist_ok=True)
        subprocess.run(["mount", "--bind", folder / own, path], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
