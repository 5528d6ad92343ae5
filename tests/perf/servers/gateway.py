"""Web and doors behind the gateway of deploy/, as a browser reaches them, on the benchmark's own database."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from devcluster.controlplane import programs
from devcluster.processes.paths import ROOT
from devcluster.processes.ports import answers, free_port
from devcluster.processes.supervisor import Command, Supervisor
from tests.perf.servers.served import served, served_by_gunicorn


@contextmanager
def portal_behind_gateway() -> Iterator[str]:
    """Yields its address."""
    port = free_port()
    host, notebooks = f"localhost:{port}", f"notebooks.localhost:{port}"
    own = {"PORTAL_URL": f"http://{host}", "ALLOWED_HOSTS": "*", "NOTEBOOKS_DOMAIN": notebooks}
    with (
        tempfile.TemporaryDirectory() as home,
        served(**own) as doors,
        served_by_gunicorn(**own) as web,
        Supervisor(Path(home) / "log") as supervisor,
    ):
        caddy = programs.find_or_build(supervisor)["caddy"]
        argv = [caddy, "run", "--config", "deploy/Caddyfile", "--adapter", "caddyfile"]
        addresses = {
            "PATH": os.environ["PATH"],
            "HOME": home,
            "GATEWAY_ADDRESS": f"http://:{port}",
            "WEB_UPSTREAM": f"127.0.0.1:{web.port}",
            "DOORS_UPSTREAM": f"127.0.0.1:{doors.port}",
            "PORTAL_HOST": host,
            "NOTEBOOKS_DOMAIN": notebooks,
        }
        supervisor.start(Command("gateway", argv, env=addresses, cwd=ROOT, ready=partial(answers, port)))
        supervisor.until_ready()
        yield f"http://{host}"
