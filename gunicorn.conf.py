"""gunicorn reads this file by its name from the directory it starts in. Numbers of workers: command line."""

import os
import shutil
import socket
import tempfile
from typing import Any

# All addresses, IPv6 where the machine has it: a socket of IPv6 also takes connections of IPv4.
bind = "[::]:8000" if socket.has_dualstack_ipv6() else "0.0.0.0:8000"
# Loaded once and forked: processes share unchanged memory, and a start needs one import.
preload_app = True
# Our gateway keeps no connection (deploy/Caddyfile). Another one that does closes it first, as most do within 60 s, so
# it never sends a POST on a connection that is being closed.
keepalive = 75
# Limits before a request is processed: its line, the number of headers, and the size of each. The gateway refuses
# slightly shorter lines and cookies with a useful message.
limit_request_line = 4094
limit_request_fields = 64
limit_request_field_size = 8190
# Workers of one master share a port for metrics: their counters meet in this directory.
_counters = ""
if os.environ.get("INTERNAL_PORT", "0") != "0" and "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
    _counters = tempfile.mkdtemp(prefix="gpu-portal-counters-")
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = _counters


def pre_request(worker: Any, req: Any) -> None:
    # portal/web/request_body.py calls this if it refuses a body that it has not read: the rest of the body would be
    # taken for the next request.
    req.body.close_connection = req.force_close


def post_worker_init(worker: Any) -> None:
    from portal.ops import ops_server

    ops_server.start_ops_server()


def on_exit(server: Any) -> None:
    if _counters:
        shutil.rmtree(_counters, ignore_errors=True)
