"""The real doors process, for tests that talk to it over plain HTTP."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from dataclasses import dataclass

from django.db import connection
from django.test import Client

from accounts.models import User

PROMISED_S = 5.0

# The longest time that a fully loaded test machine may keep all of them waiting.
BUSY_S = 1.0


NOTEBOOKS = "notebooks.localhost:8000"
# The application name of its connections in PostgreSQL.
IN_DATABASE = "doors"


@dataclass
class Doors:
    port: int
    pid: int = 0

    def get(self, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
        """The time-out stops a test that hangs: 20 s were not enough on a busy machine, behind 50 other callers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
            response = connection.getresponse()
            return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
        finally:
            connection.close()


class Stream:
    """An open event stream that a thread of its own reads."""

    def __init__(self, doors: Doors, path: str, session: str = "", bearer: str = "") -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", doors.port, timeout=30)
        headers = {"Cookie": f"session={session}"} if session else {"Authorization": f"Bearer {bearer}"}
        self._connection.request("GET", path, headers=headers)
        self.response = self._connection.getresponse()
        self.received = b""
        self.ended_at: float | None = None
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            while data := self.response.read1(65536):
                self.received += data
        except (OSError, http.client.HTTPException, ValueError):
            pass
        self.ended_at = time.monotonic()

    def has(self, text: str) -> bool:
        return text.encode() in self.received

    def close(self) -> None:
        if self._connection.sock:
            self._connection.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(5)
        self._connection.close()


def session_of(user: User) -> str:
    client = Client()
    client.force_login(user)
    return str(client.cookies["session"].value)


def database_connections() -> int:
    """Counts connections of the doors process. The test process may have several, of servers that earlier tests ran in
    threads.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = %s",
            [IN_DATABASE],
        )
        return int(cursor.fetchone()[0])
