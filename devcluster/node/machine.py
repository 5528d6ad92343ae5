"""What a real node needs of this machine: root, some programs of Debian, and namespaces that end with their processes.

Network and mounts are namespaces of the node, so nothing of it stays on the machine: when its first process ends, the
kernel ends the others and removes mounts, bridges and packet filter rules. What remains is named here and is removed by
`clean`: the named network namespace, which also holds the link to the machine, and the control groups.
"""

from __future__ import annotations

import ipaddress
import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from devcluster.processes.console import UserError, say

CGROUPS = Path("/sys/fs/cgroup")
CNI = Path("/usr/lib/cni")
# program → Debian package
NEEDED = {
    "runc": "runc",
    "ip": "iproute2",
    "iptables": "iptables",
    "nft": "nftables",
    "ipset": "ipset",
    "conntrack": "conntrack",
    "unshare": "util-linux",
    "mount": "mount",
    "debootstrap": "debootstrap",
    "podman": "podman",
}
PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
# Shared address space (RFC 6598): each node gets 512 addresses of it, by the port of its API server.
_ADDRESSES = ipaddress.ip_network("100.64.0.0/10")
_SIZE = 512


def missing() -> str:
    """Returns why this machine cannot run a real node, as a sentence; "" if it can."""
    if os.geteuid() != 0:
        return "A real node needs root: it creates network namespaces, mounts and control groups."
    absent = [package for program, package in NEEDED.items() if not shutil.which(program, path=PATH)]
    if not (CNI / "bridge").exists():
        absent.append("containernetworking-plugins")
    if absent:
        return f"A real node needs programs that are not installed: apt-get install {' '.join(absent)}."
    return ""


def can_run(_arguments: object) -> int:
    """`run.py can-run-node`: exit code 0, or 1 and the reason as a sentence. It tries what a node does first, since
    containers and virtual machines differ in what they allow.
    """
    why = missing()
    if not why:
        trial = NodeNamespaces(os.getpid())
        try:
            trial.prepare()
            _try_mounts()
        except UserError as refused:
            why = str(refused)
        finally:
            trial.clean()
    if why:
        say(why)
    return 1 if why else 0


def check() -> None:
    if why := missing():
        raise UserError(why, "Omit the real node, or run this as root on a machine that has them.")


@dataclass(frozen=True)
class NodeNamespaces:
    """The names and addresses of one node, derived from the port of its API server."""

    port: int

    @property
    def _first(self) -> ipaddress.IPv4Address:
        slots = _ADDRESSES.num_addresses // _SIZE
        return ipaddress.IPv4Address(int(_ADDRESSES.network_address) + self.port % slots * _SIZE)

    @property
    def namespace(self) -> str:
        return f"gpu-portal-{self.port}"

    @property
    def link(self) -> str:
        return f"gp{self.port}"

    @property
    def pods(self) -> ipaddress.IPv4Network:
        return ipaddress.IPv4Network((self._first, 24))

    @property
    def machine_address(self) -> str:
        return str(self._first + 257)

    @property
    def node_address(self) -> str:
        return str(self._first + 258)

    @property
    def cgroup(self) -> str:
        return f"/{self.namespace}"

    def inside(self, argv: list[object]) -> list[object]:
        """Returns the command that runs `argv` as the first process of new process and mount namespaces, in the node's
        network. `ip netns exec` is no alternative: it mounts /sys anew, without control groups.
        """
        enter = ["nsenter", f"--net=/run/netns/{self.namespace}"]
        alone = ["unshare", "--mount", "--propagation", "slave", "--pid", "--fork", "--kill-child", "--mount-proc"]
        return [*enter, *alone, *argv]

    def prepare(self) -> None:
        self.clean()
        _run("ip", "netns", "add", self.namespace)
        peer = ("peer", "name", "eth0", "netns", self.namespace)
        _run("ip", "link", "add", self.link, "type", "veth", *peer)
        _run("ip", "address", "add", f"{self.machine_address}/30", "dev", self.link)
        _run("ip", "link", "set", self.link, "up")
        _run("ip", "route", "add", str(self.pods), "via", self.node_address)
        within = ("ip", "-n", self.namespace)
        _run(*within, "address", "add", f"{self.node_address}/30", "dev", "eth0")
        for device in ("lo", "eth0"):
            _run(*within, "link", "set", device, "up")
        _run(*within, "route", "add", "default", "via", self.machine_address)
        for controller in _controllers():
            (controller / self.cgroup.strip("/")).mkdir(exist_ok=True)

    def clean(self) -> None:
        """Removes what an earlier node of the same name left. Call it when no process of the node runs."""
        if (Path("/run/netns") / self.namespace).exists():
            _run("ip", "netns", "delete", self.namespace)
        for controller in _controllers():
            folder = controller / self.cgroup.strip("/")
            for one in sorted(folder.rglob("*/"), reverse=True) if folder.exists() else ():
                with suppress(OSError):
                    one.rmdir()
            with suppress(OSError):
                folder.rmdir()


def _controllers() -> list[Path]:
    """Returns the roots of all hierarchies: one on cgroup v2, one per controller on v1."""
    if (CGROUPS / "cgroup.controllers").exists():
        return [CGROUPS]
    return [path for path in CGROUPS.iterdir() if path.is_dir() and not path.is_symlink()]


def _try_mounts() -> None:
    """An overlay, as of an image's layers, in namespaces of its own."""
    with tempfile.TemporaryDirectory(prefix="gpu-portal-") as folder:
        for name in ("lower", "upper", "work", "all"):
            (Path(folder) / name).mkdir()
        layers = f"lowerdir={folder}/lower,upperdir={folder}/upper,workdir={folder}/work"
        alone = ("unshare", "--mount", "--pid", "--fork", "--mount-proc")
        _run(*alone, "mount", "-t", "overlay", "overlay", "-o", layers, f"{folder}/all")


def _run(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env={**os.environ, "PATH": PATH})
    if done.returncode:
        raise UserError(
            f"This machine refused `{' '.join(argv)}`: {done.stderr.strip()}",
            "A real node needs network namespaces and veth devices. Omit it where the machine has none.",
        )
