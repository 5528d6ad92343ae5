"""The portal's own processes for demo, benchmarks and tests: gunicorn, uvicorn, Celery, the watcher and Caddy, as in
production.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import secrets
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from nacl.encoding import Base64Encoder
from nacl.public import PrivateKey

from devcluster.processes.paths import ROOT
from devcluster.processes.ports import answers
from devcluster.processes.private_files import write_private
from devcluster.processes.readiness import answers_ready
from devcluster.processes.supervisor import Command

# Variables of the caller's environment that the portal's processes get. All others are set explicitly.
PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ", "LOG_LEVEL")
CONNECTIONS = {
    "web": {"DATABASE_POOL": "true"},
    "doors": {"DATABASE_POOL": "true"},
    "worker": {"DATABASE_CONN_MAX_AGE": "300"},
}
# The processes that sign in to PostgreSQL, each with its own rights.
LOGINS = ("web", "doors", "worker", "beat", "watcher")
NAMES = ("web", "doors", "worker", "beat", "watcher", "gateway")


@dataclass(frozen=True)
class Portal:
    state: Path
    services: dict[str, Any]
    ports: dict[str, int]
    caddy: Path
    workers: int = 2
    scheme: str = "http"
    seeded_from: tuple[str, ...] = ()  # prefix of a command that enters the network of the database

    @property
    def url(self) -> str:
        # Browsers resolve names below localhost to this machine.
        return f"{self.scheme}://localhost:{self.ports['gateway']}"

    @property
    def notebooks_domain(self) -> str:
        return f"notebooks.localhost:{self.ports['gateway']}"

    def commands(self) -> list[Command]:
        """Returns the commands in the order of their start."""
        python = sys.executable
        web = f"127.0.0.1:{self.ports['web']}"
        gunicorn = [python, "-m", "gunicorn", "portal.wsgi:application", "--bind", web]
        gunicorn += ["--workers", "2", "--threads", "630", "--no-control-socket"]
        uvicorn = [python, "-m", "uvicorn", "portal.asgi:application", "--host", "127.0.0.1"]
        # Without a limit, one open stream would block the shutdown for ever.
        uvicorn += ["--port", str(self.ports["doors"]), "--no-access-log", "--timeout-graceful-shutdown", "3"]
        # Same value as in gunicorn.conf.py: the gateway must close an idle connection before the server does.
        uvicorn += ["--timeout-keep-alive", "75"]
        celery = [python, "-m", "celery", "-A", "portal"]
        worker = [*celery, "worker", "-P", "prefork", "-Q", "people,background", "--concurrency", str(self.workers)]
        worker += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
        caddy = [self.caddy, "run", "--config", "deploy/Caddyfile", "--adapter", "caddyfile"]
        return [
            self._command("web", gunicorn),
            self._command("doors", uvicorn, identity="doors", notebooks=True),
            self._command("worker", worker, identity="worker", notebooks=True),
            self._command("beat", [*celery, "beat"]),
            self._command("watcher", [python, "manage.py", "watch_cluster"], identity="watcher"),
            Command("gateway", caddy, env=self._gateway(), cwd=ROOT, ready=lambda: answers(self.ports["gateway"])),
        ]

    def seed(self, what: str, scenario: str = "") -> Command:
        """`people`: creates the database tables and accounts. `catalog`: creates what depends on the cluster's nodes,
        which the watcher must have seen. `past`: moves back what a scenario has started.
        """
        argv: list[object] = [*self.seeded_from, sys.executable, "-m", "devcluster.demo.seed"]
        argv += [what, self.state / "accounts.json", scenario]
        if what == "people":
            argv += self.write_logins()
        # People are seeded before the cluster is up.
        identity = "worker" if what == "catalog" else ""
        return Command(f"seed-{what}", argv, env=self.environment("seed", identity=identity), cwd=ROOT)

    def environment(self, name: str, *, identity: str = "", notebooks: bool = False) -> dict[str, str]:
        kept = {key: os.environ[key] for key in PASSED_ON if key in os.environ}
        told = {
            "DJANGO_SETTINGS_MODULE": "portal.settings",
            "PYTHONUNBUFFERED": "1",
            "SECRET_KEY": self._secret("secret_key"),
            "DATABASE_URL": self.database_url(name),
            "REDIS_URL": self.services["redis_url"],
            "PROMETHEUS_URL": self.services.get("prometheus_url", ""),
            "MIG_LAYOUTS_CONFIG_MAP": self.services.get("mig_layouts", ""),
            "ALLOWED_HOSTS": "localhost,127.0.0.1",
            "PORTAL_URL": self.url,
            "NOTEBOOKS_DOMAIN": self.notebooks_domain,
            "EMAIL_URL": f"filemail:///{self.state / 'mail'}",
            "INTERNAL_PORT": str(self.ports.get(f"{name}-internal", 0)),
            "BEAT_SCHEDULE_FILE": str(self.state / "beat"),
            "WORKER_CONCURRENCY": str(self.workers),
        }
        told |= CONNECTIONS.get(name, {})
        if notebooks:
            told["NOTEBOOK_TOKEN_KEY"] = self._secret("notebook_token_key")
        if name in ("web", "worker"):
            told |= self._sealing_key(name)
        if name == "web":
            second_factor_key = hashlib.sha256(self._secret("second_factor_key").encode()).digest()
            told["SECOND_FACTOR_KEY"] = base64.b64encode(second_factor_key).decode()
        if identity:
            told["PORTAL_KUBECONFIG"] = self.services["kubeconfigs"][identity]
        return kept | told

    def database_url(self, name: str) -> str:
        """The seed is the owner; every process signs in as itself, unless the database was there before."""
        parts = urlsplit(str(self.services["database_url"]))
        if name not in LOGINS or not self.services.get("has_logins"):
            return parts.geturl()
        password = self._secret(f"database_password_{name}")
        host = parts.netloc.rpartition("@")[2]
        login = f"{parts.path.strip('/')}_{name}_login"
        return parts._replace(netloc=f"{login}:{password}@{host}").geturl()

    def write_logins(self) -> list[str]:
        """Writes the URL of each process, and returns the arguments of `manage.py database_roles`."""
        if not self.services.get("has_logins"):
            return []
        for name in LOGINS:
            write_private(self.state / f"database-{name}", self.database_url(name))
        return [f"{name}={self.state / f'database-{name}'}" for name in LOGINS]

    def _command(self, name: str, argv: list[str], **identity: Any) -> Command:
        # After SIGTERM, these processes first finish their requests and tasks.
        env = self.environment(name, **identity)
        ready = partial(self._is_ready, name)
        return Command(name, argv, env=env, cwd=ROOT, ready=ready, stop_within_s=12, stops_with="portal")

    def _is_ready(self, name: str) -> bool:
        """The readiness check of an orchestrator: whether database, Redis and migrations are in the state that this
        process needs.
        """
        return answers_ready(self.ports[f"{name}-internal"], timeout_s=5)

    def _gateway(self) -> dict[str, str]:
        kept = {key: os.environ[key] for key in ("PATH", "TMPDIR") if key in os.environ}
        home = str(self.state / "caddy")
        return kept | {
            "HOME": home,
            "XDG_DATA_HOME": home,
            "XDG_CONFIG_HOME": home,
            "GATEWAY_ADDRESS": f"http://:{self.ports['gateway']}",
            "WEB_UPSTREAM": f"127.0.0.1:{self.ports['web']}",
            "DOORS_UPSTREAM": f"127.0.0.1:{self.ports['doors']}",
            "PORTAL_HOST": urlsplit(self.url).netloc,
            "NOTEBOOKS_DOMAIN": self.notebooks_domain,
        }

    def _sealing_key(self, name: str) -> dict[str, str]:
        """Returns one half of a key pair: web encrypts the secrets of teams, and the worker decrypts them."""
        pair = PrivateKey(hashlib.sha256(self._secret("secrets_key").encode()).digest())
        if name == "web":
            return {"SECRETS_PUBLIC_KEY": pair.public_key.encode(Base64Encoder).decode()}
        return {"SECRETS_PRIVATE_KEY": pair.encode(Base64Encoder).decode()}

    def _secret(self, name: str) -> str:
        """Returns a secret that is stored in the state directory, so that sessions and tickets stay valid after a
        restart.
        """
        path = self.state / "secrets.json"
        known: dict[str, str] = json.loads(path.read_text()) if path.exists() else {}
        if name not in known:
            known[name] = secrets.token_urlsafe(48)
            write_private(path, json.dumps(known))
        return known[name]
