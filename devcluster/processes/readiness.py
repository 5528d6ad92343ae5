"""Whether a program says that it is ready."""

from __future__ import annotations

import http.client


def answers_ready(port: int, *, timeout_s: float = 2) -> bool:
    """Asks /readyz on this machine. Raises OSError while nothing listens there."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout_s)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except http.client.HTTPException:
        return False
    finally:
        connection.close()
