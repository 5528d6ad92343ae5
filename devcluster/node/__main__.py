"""The first process of the node's namespaces: mounts, then the programs of `node.json`, each with a log of its own.

It ends when one of them ends; the kernel then ends all others, the containers too. As first process it also collects
the ended processes that containers leave.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
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
    while True:
        pid, status = os.wait()
        if pid in programs:
            code = os.waitstatus_to_exitcode(status)
            sys.stderr.write(f"{programs[pid]} ended with exit code {code}; see {folder}/log/{programs[pid]}.log\n")
            return 1


def _mounts(folder: Path) -> None:
    """Paths that kubelet, runc and the network plugins have built in point to the node's own folder."""
    subprocess.run(["mount", "--make-rshared", "/"], check=True)
    for own, path in (("lib", "/var/lib"), ("log", "/var/log")):
        (folder / own).mkdir(exist_ok=True)
        subprocess.run(["mount", "--bind", folder / own, path], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
