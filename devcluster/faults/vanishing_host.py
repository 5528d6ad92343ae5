"""A host that can vanish: a network namespace whose processes reach this machine's loopback over a cable of their own.

A proxy cannot show what happens when a host is gone: its own kernel still answers the keepalives of both sides. Here
the frames go to an address that nobody has, so nobody gets an error, a reset or an answer. It needs root and `ip`, and
no firewall.

This machine gets no IP address for it: Chromium ends all its HTTP/2 requests when an address comes or goes anywhere on
the machine (ERR_NETWORK_CHANGED), also those of browser tests beside it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress
from types import TracebackType

# The addresses of all such hosts.
NETWORK = "10.213.77.0/24"
OURS, ITS, NOBODY = "02:00:00:00:00:01", "02:00:00:00:00:02", "02:00:00:00:00:99"


class NoNamespaces(Exception):
    """A host of its own cannot be made here; the text says why."""


class VanishingHost:
    """with VanishingHost(3) as host:
        Popen([*host.prefix, "python", ...])
        host.vanish()

    `number`: 0 to 63, one for each host at a time on this machine. `cable`: its device on this machine.
    """

    def __init__(self, number: int) -> None:
        self._name = f"gpu-away-{number}"
        self.cable, self._there = f"gpuaway{number}", f"gpuhere{number}"
        # Of the first only the other side knows, as the way to this machine.
        self._our_address, self._its_address = f"10.213.77.{4 * number + 1}", f"10.213.77.{4 * number + 2}"

    @property
    def prefix(self) -> list[str]:
        """A command after it runs on that host, with the same files and users."""
        return ["ip", "netns", "exec", self._name]

    def __enter__(self) -> VanishingHost:
        if os.geteuid() != 0 or not shutil.which("ip"):
            raise NoNamespaces("A host of its own needs root and the program ip.")
        try:
            self._make()
        except subprocess.CalledProcessError as error:
            self._remove()
            raise NoNamespaces(f"A host of its own could not be made: {error.stderr.strip()}") from error
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._remove()

    def vanish(self) -> None:
        """No packet reaches the other side any more, in either direction. Connections stay open on both."""
        self._connect(to_it=NOBODY, to_us=NOBODY)

    def come_back(self) -> None:
        """Ends `vanish`. Connections that neither side gave up work again."""
        self._connect(to_it=ITS, to_us=OURS)

    def _connect(self, *, to_it: str, to_us: str) -> None:
        """Sets where the frames of each side go. Without an address on this side nobody could ask for it."""
        _run("ip", "neigh", "replace", self._its_address, "lladdr", to_it, "dev", self.cable, "nud", "permanent")
        self._inside(
            "ip", "neigh", "replace", self._our_address, "lladdr", to_us, "dev", self._there, "nud", "permanent"
        )

    def _make(self) -> None:
        here, there = self.cable, self._there
        _run("ip", "netns", "add", self._name)
        ours = ("ip", "link", "add", here, "address", OURS, "type", "veth")
        _run(*ours, "peer", "name", there, "address", ITS, "netns", self._name)
        # Otherwise the kernel gives it an IPv6 address.
        _run("ip", "link", "set", here, "addrgenmode", "none")
        # Loopback addresses are routed over this cable only: every address in services.json is valid on that host.
        _run("sh", "-c", _loopback_over(here))
        _run("ip", "link", "set", here, "up")
        _run("ip", "route", "add", self._its_address, "dev", here)
        self._inside("ip", "addr", "add", f"{self._its_address}/30", "dev", there)
        self._inside("sh", "-c", _loopback_over(there))
        self._inside("ip", "link", "set", there, "up")
        self._connect(to_it=ITS, to_us=OURS)
        self._inside("ip", "route", "add", "127.0.0.0/8", "via", self._our_address, "dev", there)

    def _remove(self) -> None:
        with suppress(subprocess.CalledProcessError):
            _run("ip", "link", "del", self.cable)
        with suppress(subprocess.CalledProcessError):
            _run("ip", "netns", "del", self._name)

    def _inside(self, *command: str) -> None:
        _run(*self.prefix, *command)


def _loopback_over(device: str) -> str:
    settings = f"/proc/sys/net/ipv4/conf/{device}"
    return f"echo 1 > {settings}/route_localnet && echo 0 > {settings}/rp_filter"


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=20)
