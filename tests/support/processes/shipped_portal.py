"""Web under gunicorn behind Caddy, as in production, except for addresses. Doors is the process of all tests."""

from __future__ import annotations

import http.client
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from devcluster.processes.ports import answers, free_port
from devcluster.processes.supervisor import Command, Supervisor
from tests.plugin import process_environment
from tests.support.cluster.identities import DEADLINE_S
from tests.support.shipped import ROOT


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class ShippedPortal:
    host: str
    gateway: int
    web: int
    doors: int
    log: Path

    def ask(self, path: str, method: str = "GET", body: bytes | None = None, **headers: str) -> Answer:
        """One request through the gateway, on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.gateway, timeout=10)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, path, body, {"Host": self.host, **named})
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, found, response.read())
        finally:
            connection.close()

    @contextmanager
    def begun(self, port: int, count: int, head: str, body: bytes) -> Iterator[list[socket.socket]]:
        """Connections that have sent this much of a request and send no more."""
        with ExitStack() as opened:
            found = []
            for _ in range(count):
                found.append(opened.enter_context(socket.create_connection(("127.0.0.1", port), DEADLINE_S)))
                found[-1].sendall(f"{head}\r\nHost: {self.host}\r\n\r\n".encode() + body)
            yield found


@contextmanager
def shipped_portal(services: dict[str, Any], doors: int, home: Path) -> Iterator[ShippedPortal]:
    web, gateway = free_port(), free_port()
    host = f"localhost:{gateway}"
    settings = process_environment("web") | {
        "PORTAL_URL": f"http://{host}",
        "ALLOWED_HOSTS": "*",
        "DATABASE_POOL": "true",
    }
    gunicorn = [sys.executable, "-m", "gunicorn", "portal.wsgi:application", "--bind", f"127.0.0.1:{web}"]
    gunicorn += ["--workers", "2", "--threads", "4", "--graceful-timeout", "1", "--no-control-socket"]
    caddy = [Path(services["bin_dir"]) / "caddy", "run", "--config", "deploy/Caddyfile", "--adapter", "caddyfile"]
    addresses = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "GATEWAY_ADDRESS": f"http://:{gateway}",
        "WEB_UPSTREAM": f"127.0.0.1:{web}",
        "DOORS_UPSTREAM": f"127.0.0.1:{doors}",
        "PORTAL_HOST": host,
        "NOTEBOOKS_DOMAIN": f"notebooks.localhost:{gateway}",
    }
    with Supervisor(home / "log") as supervisor:
        supervisor.start(Command("web", gunicorn, env=settings, cwd=ROOT, ready=partial(answers, web)))
        supervisor.start(Command("gateway", caddy, env=addresses, cwd=ROOT, ready=partial(answers, gateway)))
        supervisor.until_ready()
        yield ShippedPortal(host, gateway, web, doors, supervisor.running["gateway"].log)
