"""The ports of one state directory. They stay the same between starts as long as they are free, because stored data
contain addresses with these ports.
"""

from __future__ import annotations

import json
import random
import socket
from pathlib import Path

from devcluster.processes.console import UserError

# Below Linux's range for outgoing connections, so that no outgoing connection takes a port after it was chosen.
_PORTS = range(20_000, 32_000)


PORT_NAMES = (
    "postgres", "redis", "etcd", "etcd-peer", "apiserver", "controller-manager", "scheduler",
    "kueue-webhook", "kueue-health", "kueue-metrics", "visibility", "kubelet",
    "web", "doors", "gateway", "gateway-admin",
    "exporters", "prometheus",
    "web-internal", "doors-internal", "worker-internal", "watcher-internal", "beat-internal",
)  # fmt: skip


def assign_ports(state: Path) -> dict[str, int]:
    file = state / "ports.json"
    try:
        before: dict[str, int] = json.loads(file.read_text())
    except (OSError, ValueError):
        before = {}
    taken: set[int] = set()
    ports: dict[str, int] = {}
    for name in PORT_NAMES:
        known = before.get(name)
        if known is not None and known not in taken and is_free(known):
            taken.add(known)
            ports[name] = known
        else:
            ports[name] = free_port(taken)
    file.write_text(json.dumps(ports, indent=1))
    return ports


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port(taken: set[int] | None = None) -> int:
    """Returns a port on 127.0.0.1 on which nothing listens and that is not in `taken`, and adds it to `taken`."""
    taken = set() if taken is None else taken
    for _ in range(1000):
        port = random.choice(_PORTS)
        if port not in taken and is_free(port):
            taken.add(port)
            return port
    raise UserError(
        f"No free port between {_PORTS.start} and {_PORTS.stop} on 127.0.0.1.", "End some local servers and try again."
    )


def answers(port: int, host: str = "127.0.0.1") -> bool:
    """Returns True if a server accepts connections on this port; otherwise raises OSError."""
    with socket.create_connection((host, port), timeout=1.0):
        return True
