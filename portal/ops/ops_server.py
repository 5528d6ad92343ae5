"""A small HTTP server beside the process's own work, on INTERNAL_PORT: /livez, /readyz and /metrics.

The gateway does not route to it. It is one thread, started after forking. If several workers share the port, the first
one has it and the others wait until it is free.
"""

from __future__ import annotations

import errno
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import structlog
from django.conf import settings
from django.db import connections
from prometheus_client import CONTENT_TYPE_LATEST

from portal.ops import health, metrics
from portal.ops.liveness import liveness

log = structlog.get_logger(__name__)
TRY_AGAIN_S = 5
PLAIN = "text/plain; charset=utf-8"


class OpsHandler(BaseHTTPRequestHandler):
    # A client that sends nothing must not block a thread.
    timeout = 5

    def do_GET(self) -> None:
        try:
            status, kind, body = answer(self.path.partition("?")[0])
        except Exception:
            # Otherwise the thread would end without a log line, and Prometheus would only see a closed connection.
            log.exception("internal_answer_failed", path=self.path)
            status, kind, body = 500, PLAIN, b"failed; see the log\n"
        finally:
            connections.close_all()  # each request has its own thread, and each thread its own connection
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing: probes come every few seconds."""


class OpsServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, host: str, port: int) -> None:
        """`host` "": all addresses, IPv6 where the machine has it; that socket also takes connections of IPv4."""
        host = host or ("::" if socket.has_dualstack_ipv6() else "0.0.0.0")
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), OpsHandler)

    def handle_error(self, request: object, client_address: object) -> None:
        """The library prints a stack trace, also for a probe that ended its wait and left before the answer."""
        if not isinstance(sys.exception(), ConnectionError):
            log.exception("internal_connection_failed")


def answer(path: str) -> tuple[int, str, bytes]:
    if path == "/livez":
        status, text = liveness.probe()
        return status, PLAIN, text.encode()
    if path == "/readyz":
        status, text = health.readiness()
        return status, PLAIN, text.encode()
    if path == "/metrics":
        return 200, CONTENT_TYPE_LATEST, metrics.exposition()
    return 404, PLAIN, b"/livez, /readyz, /metrics\n"


def start_ops_server() -> threading.Thread | None:
    """Starts the thread and returns at once; returns None if INTERNAL_PORT is 0. Call it after forking."""
    if not settings.INTERNAL_PORT:
        return None
    thread = threading.Thread(target=_serve, name="internal", daemon=True)
    thread.start()
    return thread


def _serve() -> None:
    waiting = threading.Event()
    while True:
        try:
            server = OpsServer(settings.INTERNAL_ADDRESS, settings.INTERNAL_PORT)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                log.exception("internal_port_unusable", port=settings.INTERNAL_PORT)
                return
            waiting.wait(TRY_AGAIN_S)
            continue
        with server:
            server.serve_forever()
