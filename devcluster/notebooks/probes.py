"""The readiness probe of a container (or its startup probe), carried out by this process. Without a probe, any HTTP
response means ready.
"""

from __future__ import annotations

import http.client
import socket
from dataclasses import dataclass, field

from devcluster.client.types import Json

PORT = 8888
NEVER_AGAIN_S = 86_400.0  # without a probe, a container that is ready stays ready


@dataclass(frozen=True)
class Probe:
    port: int = PORT
    path: str = ""  # empty: any HTTP response is a success; not used with `tcp`
    tcp: bool = False
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    period_s: float = 10.0
    timeout_s: float = 1.0
    failures: int = 3

    def passes(self, address: str) -> bool:
        try:
            if self.tcp:
                socket.create_connection((address, self.port), timeout=self.timeout_s).close()
                return True
            connection = http.client.HTTPConnection(address, self.port, timeout=self.timeout_s)
            try:
                connection.request("GET", self.path or "/", headers=self.headers)
                status = connection.getresponse().status
            finally:
                connection.close()
        except (OSError, http.client.HTTPException):
            return False
        return not self.path or 200 <= status < 400


def readiness(container: Json) -> Probe:
    spec = container.get("readinessProbe") or container.get("startupProbe")
    ports = {port.get("name", ""): port["containerPort"] for port in container.get("ports", [])}
    default = next(iter(ports.values()), PORT)
    if spec is None:
        return Probe(port=default, period_s=NEVER_AGAIN_S)
    asked = spec.get("httpGet") or spec.get("tcpSocket") or spec.get("grpc") or {}
    port = asked.get("port", default)
    return Probe(
        port=ports.get(port, default) if isinstance(port, str) else port,
        path=spec["httpGet"].get("path", "/") if "httpGet" in spec else "",
        tcp="tcpSocket" in spec or "grpc" in spec,
        headers={header["name"]: header["value"] for header in asked.get("httpHeaders", [])},
        delay_s=spec.get("initialDelaySeconds", 0),
        period_s=spec.get("periodSeconds", 10),
        timeout_s=spec.get("timeoutSeconds", 1),
        failures=spec.get("failureThreshold", 3),
    )
