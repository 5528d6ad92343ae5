"""gunicorn reads this file by its name from the directory it starts in. Addresses and numbers: command line."""

import os
import shutil
import tempfile
from typing import Any

# Loaded once and forked: processes share what stays as it is, and a start costs one import.
preload_app = True
# Longer than the gateway keeps a connection that nobody uses (deploy/Caddyfile): who sends next closes first, and no
# POST meets a connection that is being closed.
keepalive = 75
# What a request may be before anybody looks at it: its line, how many headers, and each of them. The gateway says no
# to a little less of line and cookies, in words that help.
limit_request_line = 4094
limit_request_fields = 64
limit_request_field_size = 8190
# Workers of one master share a port for metrics: their counters meet in this directory.
_counters = ""
if os.environ.get("INTERNAL_PORT", "0") != "0" and "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
    _counters = tempfile.mkdtemp(prefix="gpu-portal-counters-")
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = _counters


def post_worker_init(worker: Any) -> None:
    from portal.ops import ops_server

    ops_server.start_ops_server()


def on_exit(server: Any) -> None:
    if _counters:
        shutil.rmtree(_counters, ignore_errors=True)
