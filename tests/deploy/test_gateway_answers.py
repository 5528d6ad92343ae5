"""What the gateway itself writes into its log."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.deploy.gateway import running
from tests.support.cluster.identities import until

Json = dict[str, Any]
CALL = "/api/v1/workloads"


@contextmanager
def raw(answer: bytes) -> Iterator[str]:
    """host:port of a server that answers every connection with these bytes and closes it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:  # closed
                    return
                with connection:
                    connection.recv(65536)
                    connection.sendall(answer)
                    connection.shutdown(socket.SHUT_WR)
                    connection.recv(1)

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


def test_the_error_log_holds_no_secret(services: Json, tmp_path: Path) -> None:
    """The log of an answer that breaks off has the whole request. It is another logger than that of the accesses."""
    secrets = ["query-of-gold", "cookie-of-gold", "csrf-of-gold", "bearer-of-gold", "answer-of-gold"]
    headers = [("Cookie", f"session={secrets[1]}"), ("X-CSRFToken", secrets[2]), ("Authorization", secrets[3])]
    headers.append(("Referer", f"http://portal.test/?token={secrets[0]}"))
    breaks_off = f"HTTP/1.1 200 OK\r\nSet-Cookie: a={secrets[4]}\r\nContent-Length: 100\r\n\r\nonly".encode()
    with raw(breaks_off) as web, running(services, tmp_path, WEB_UPSTREAM=web) as gateway:
        port = gateway.port
        for path in (f"/gateway?ticket={secrets[0]}", f"{CALL}?token={secrets[0]}&x=1"):
            with socket.create_connection(("127.0.0.1", port), 10) as visitor:
                lines = [f"GET {path} HTTP/1.1", "Host: portal.test", *(f"{name}: {value}" for name, value in headers)]
                visitor.sendall("\r\n".join([*lines, "", ""]).encode())
                while visitor.recv(65536):
                    pass
        until(lambda: gateway.log.read_text().count("incomplete response") == 2, "both are in the log")
        log = gateway.log.read_text()

    assert [secret for secret in secrets if secret in log] == []
    broken = [json.loads(line) for line in log.splitlines() if "incomplete response" in line]
    assert [line["request"]["uri"] for line in broken] == ["/gateway?ticket=***", f"{CALL}?token=***&x=***"]
