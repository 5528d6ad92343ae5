"""The portal behind the real gateway and two real notebook servers, each at an origin of its own; no cluster.

Pods are rows that say where the notebooks listen. Two layouts: the demo's, and production's as it is hardest to
defend, https with portal and notebooks below one registrable domain, which browsers take for one site.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from django.conf import settings

from accounts.models import User
from catalog.models import GpuClass
from cluster.manifests.run import NO_TOKEN_IN_PAGES
from cluster.models import MirrorPod
from devcluster.notebooks.machine import free_address
from devcluster.processes.ports import answers, free_port
from devcluster.processes.supervisor import Command, Supervisor
from tenants.models import Namespace
from tests.plugin import process_environment
from tests.support.rows import running
from workloads.credentials.notebook_token import notebook_token
from workloads.models import Workload

ROOT = Path(__file__).parents[3]
NOTEBOOK_PORT = 8888
# layout → scheme, host of the portal, domain of the notebooks
LAYOUTS = {
    "demo": ("http", "localhost", "notebooks.localhost"),
    "one site": ("https", "portal.gpu.localhost", "notebooks.gpu.localhost"),
}


@dataclass(frozen=True)
class Server:
    """One notebook as it listens, past the gateway: what really is in it."""

    row: Workload
    address: str
    token: str
    home: Path

    def ask(self, path: str) -> Any:
        request = urllib.request.Request(
            f"http://{self.address}:{NOTEBOOK_PORT}{path}", headers={"Authorization": f"token {self.token}"}
        )
        with urllib.request.urlopen(request, timeout=20) as response:
            return json.loads(response.read())

    def is_up(self) -> bool:
        try:
            return bool(self.ask("/api"))
        except urllib.error.URLError as error:
            raise OSError(str(error)) from error


@dataclass(frozen=True)
class Origins:
    """Addresses without a slash at their end. Alice's browser is told of `first`, where the attacks come from."""

    layout: str
    scheme: str
    portal: str
    parents: tuple[str, ...]  # domains that a notebook's host is below
    first: str
    second: str
    servers: dict[str, Server]


@contextmanager
def origins(
    layout: str, state: Path, services: dict[str, Any], *, namespace: Namespace, gpu_class: GpuClass, owner: User
) -> Iterator[Origins]:
    scheme, host, domain = LAYOUTS[layout]
    ports = {name: free_port() for name in ("web", "doors", "gateway")}
    portal = f"{scheme}://{host}:{ports['gateway']}"
    servers = {name: _server(name, state, namespace, gpu_class, owner) for name in ("first", "second")}
    with Supervisor(state / "log") as supervisor:
        for command in [
            *_portal(portal, f"{domain}:{ports['gateway']}", ports),
            _gateway(state, Path(services["bin_dir"]) / "caddy", scheme, host, domain, ports),
            *(_notebook(server) for server in servers.values()),
        ]:
            supervisor.start(command)
        supervisor.until_ready()
        parents = (domain, domain.partition(".")[2], host)
        at = {name: f"{scheme}://{one.row.origin}.{domain}:{ports['gateway']}" for name, one in servers.items()}
        yield Origins(layout, scheme, portal, parents, at["first"], at["second"], servers)


def _server(name: str, state: Path, namespace: Namespace, gpu_class: GpuClass, owner: User) -> Server:
    row = running.workload(namespace, gpu_class, name=name, by=owner)
    pod = running.make_ready(row)
    address = free_address(NOTEBOOK_PORT)
    MirrorPod.objects.filter(pk=pod.pk).update(record={**pod.record, "ip": address})
    home = state / name
    home.mkdir()
    (home / "secret.txt").write_text("forty-two")
    (home / "results.js").write_text("window.stolen = 42")
    token = notebook_token(settings.NOTEBOOK_TOKEN_KEY, workload_id=row.pk, run_number=1)
    return Server(row, address, token, home)


def _notebook(server: Server) -> Command:
    kept = {key: os.environ[key] for key in ("PATH", "LANG") if key in os.environ}
    environment = {**kept, "HOME": str(server.home), "JUPYTER_TOKEN": server.token}
    arguments = {
        "ServerApp.ip": server.address,
        "ServerApp.port": NOTEBOOK_PORT,
        "ServerApp.port_retries": 0,
        "ServerApp.root_dir": server.home,
        # Automatic in a pod, which listens on 0.0.0.0.
        "ServerApp.allow_remote_access": True,
        "ServerApp.open_browser": False,
        "ServerApp.allow_root": True,
        "LabApp.check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
        "LabApp.news_url": None,
    }
    own = [*(f"--{name}={value}" for name, value in arguments.items()), NO_TOKEN_IN_PAGES]
    argv = [sys.executable, "-m", "jupyterlab", *own]
    name = f"notebook-{server.row.name}"
    return Command(name, argv, env=environment, cwd=server.home, ready=server.is_up, stops_with="all")


def _portal(portal: str, notebooks_domain: str, ports: dict[str, int]) -> list[Command]:
    environment = process_environment() | {
        "PORTAL_URL": portal,
        "NOTEBOOKS_DOMAIN": notebooks_domain,
        "ALLOWED_HOSTS": "*",
        "DATABASE_POOL": "true",
    }
    web = ["-m", "gunicorn", "portal.wsgi:application", "--bind", f"127.0.0.1:{ports['web']}", "--no-control-socket"]
    doors = ["-m", "uvicorn", "portal.asgi:application", "--port", str(ports["doors"]), "--no-access-log"]
    doors += ["--timeout-keep-alive", "75"]
    return [
        Command(
            name,
            [sys.executable, *arguments],
            env=environment,
            cwd=ROOT,
            ready=partial(answers, ports[name]),
            stops_with="all",
        )
        for name, arguments in (
            ("web", [*web, "--threads", "8", "--graceful-timeout", "1"]),
            ("doors", [*doors, "--timeout-graceful-shutdown", "1"]),
        )
    ]


def _gateway(state: Path, caddy: Path, scheme: str, host: str, domain: str, ports: dict[str, int]) -> Command:
    port = ports["gateway"]
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(state),
        "GATEWAY_ADDRESS": f"{scheme}://:{port}",
        "WEB_UPSTREAM": f"127.0.0.1:{ports['web']}",
        "DOORS_UPSTREAM": f"127.0.0.1:{ports['doors']}",
        "PORTAL_HOST": f"{host}:{port}",
        "NOTEBOOKS_DOMAIN": f"{domain}:{port}",
    }
    if scheme == "https":
        environment["GATEWAY_TLS"] = f"tls {_certificate(state, host, f'*.{domain}')}"
    arguments = [caddy, "run", "--config", "deploy/Caddyfile", "--adapter", "caddyfile"]
    return Command("gateway", arguments, env=environment, cwd=ROOT, ready=partial(answers, port), stops_with="all")


def _certificate(state: Path, *names: str) -> str:
    """Paths of certificate and key, as Caddy takes them; nobody signed it but itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
        .sign(key, hashes.SHA256())
    )
    files = state / "tls.crt", state / "tls.key"
    files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    form = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    files[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, *form))
    return f"{files[0]} {files[1]}"
