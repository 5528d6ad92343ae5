"""The doors process as it runs, for tests that talk to it over plain HTTP."""

from __future__ import annotations

import http.client
from dataclasses import dataclass

NOTEBOOKS = "notebooks.localhost:8000"
# How PostgreSQL knows its connections.
IN_DATABASE = "doors"


@dataclass
class Doors:
    port: int
    pid: int = 0

    def get(self, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
            response = connection.getresponse()
            return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
        finally:
            connection.close()
