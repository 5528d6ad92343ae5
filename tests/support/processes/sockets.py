"""Which connections a process has open. Other test processes use the same services, so only its own are counted."""

from __future__ import annotations

from pathlib import Path

import redis
from django.conf import settings


def local_ports(pid: int) -> set[int]:
    """The local ports of its open TCP sockets."""
    own = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        try:
            own.add(str(descriptor.readlink()))
        except FileNotFoundError:  # closed in the meantime
            continue
    ports = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if f"socket:[{words[9]}]" in own:
                ports.add(int(words[1].rpartition(":")[2], 16))
    return ports


def subscriptions(pid: int) -> int:
    """Channels and patterns in Redis that the process is subscribed to."""
    client = redis.Redis.from_url(settings.REDIS_URL)
    try:
        found, ports = client.client_list(), local_ports(pid)
    finally:
        client.close()
    theirs = [one for one in found if int(one["addr"].rpartition(":")[2]) in ports]
    return sum(int(one["sub"]) + int(one["psub"]) for one in theirs)
