"""Redis with a replica and three sentinels, each with a password, of which a test may kill the primary."""

from __future__ import annotations

import os
import secrets
import signal
import socket
from dataclasses import dataclass
from pathlib import Path

import redis

from devcluster.processes.ports import free_port
from devcluster.processes.private_files import write_private
from devcluster.processes.supervisor import Command, Supervisor
from devcluster.services.redis import program
from tests.support.waiting import wait_until

SERVICE = "portal"
# The sentinels of production would wait for 5 s or more.
DOWN_AFTER_MS = 1000


@dataclass
class SentinelSet:
    supervisor: Supervisor
    servers: dict[int, str]
    sentinels: list[int]
    password: str
    sentinel_password: str

    @classmethod
    def start(cls, supervisor: Supervisor, state: Path) -> SentinelSet:
        taken: set[int] = set()
        for _ in range(5):
            taken.add(free_port(taken))
        first, second, *ports = sorted(taken)
        found = cls(
            supervisor,
            {first: "redis-1", second: "redis-2"},
            ports,
            f"p/{secrets.token_urlsafe(16)}@",
            secrets.token_urlsafe(16),
        )
        common = ["bind 127.0.0.1", f"dir {state}"]
        server = [*common, 'save ""', f'requirepass "{found.password}"', f'masterauth "{found.password}"']
        found._start("redis-1", first, state, [*server, "repl-diskless-sync-delay 0"])
        found._start("redis-2", second, state, [*server, f"replicaof 127.0.0.1 {first}"])
        for number, port in enumerate(ports, 1):
            watched = [
                f'requirepass "{found.sentinel_password}"',
                f"sentinel monitor {SERVICE} 127.0.0.1 {first} 2",
                f'sentinel auth-pass {SERVICE} "{found.password}"',
                f"sentinel down-after-milliseconds {SERVICE} {DOWN_AFTER_MS}",
                f"sentinel failover-timeout {SERVICE} 5000",
            ]
            found._start(f"sentinel-{number}", port, state, [*common, *watched], "--sentinel")
        supervisor.until_ready(*found.servers.values(), *(f"sentinel-{number}" for number in (1, 2, 3)))
        wait_until(found._knows_all, what="every sentinel knows the replica and the other two")
        return found

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.sentinels)
        password = self.password.replace("/", "%2F").replace("@", "%40")
        return f"sentinel://:{password}@{hosts}/0?service={SERVICE}&sentinel_password={self.sentinel_password}"

    def server(self, port: int) -> redis.Redis:
        return redis.Redis(port=port, password=self.password, socket_timeout=2)

    def primary(self) -> int:
        """The port, as the sentinels say."""
        asked = redis.Redis(port=self.sentinels[-1], password=self.sentinel_password, socket_timeout=2)
        return int(asked.sentinel_get_master_addr_by_name(SERVICE)[1])  # type: ignore[index]

    def kill_primary(self) -> int:
        """Returns the port of the other server."""
        port = self.primary()
        name = self.servers[port]
        os.killpg(self.supervisor.running[name].pid, signal.SIGKILL)
        self.supervisor.stop(name)
        return next(other for other in self.servers if other != port)

    def _start(self, name: str, port: int, state: Path, lines: list[str], *options: str) -> None:
        path = state / f"{name}.conf"
        # Sentinels write their state into this file.
        write_private(path, "\n".join([f"port {port}", *lines]) + "\n")

        def ready() -> bool:
            return socket.create_connection(("127.0.0.1", port), 1).close() is None

        self.supervisor.start(Command(name, [program(), path, *options], ready=ready))

    def _knows_all(self) -> bool:
        states = [
            redis.Redis(port=port, password=self.sentinel_password, socket_timeout=2).sentinel_master(SERVICE)
            for port in self.sentinels
        ]
        return all((one["num-slaves"], one["num-other-sentinels"]) == (1, 2) for one in states)  # type: ignore[index]
