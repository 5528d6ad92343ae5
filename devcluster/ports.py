"""The ports of one state directory: kept from start to start while they are free, so that kept data stays true."""

from __future__ import annotations

import json
from pathlib import Path

from devcluster.processes import free_port, is_free

NAMES = (
    "postgres", "redis", "etcd", "etcd-peer", "apiserver", "controller-manager", "scheduler",
    "kueue-webhook", "kueue-health", "kueue-metrics", "visibility", "kubelet",
    "web", "doors", "gateway", "gateway-admin",
    "web-internal", "doors-internal", "worker-internal", "watcher-internal", "beat-internal",
)  # fmt: skip


def choose(state: Path) -> dict[str, int]:
    file = state / "ports.json"
    try:
        before: dict[str, int] = json.loads(file.read_text())
    except (OSError, ValueError):
        before = {}
    taken: set[int] = set()
    ports: dict[str, int] = {}
    for name in NAMES:
        known = before.get(name)
        if known is not None and known not in taken and is_free(known):
            taken.add(known)
            ports[name] = known
        else:
            ports[name] = free_port(taken)
    file.write_text(json.dumps(ports, indent=1))
    return ports
