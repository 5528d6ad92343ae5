"""Loaded by pytest before Django's settings: points them at the services that `run.py test` started.

Every pytest process has a database of its own, dropped at its end even if a connection was left open.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from nacl.encoding import Base64Encoder
from nacl.public import PrivateKey

from tests.support import rewording
from tests.support.scheduling import Scheduling

SERVICES_VARIABLE = "PORTAL_TEST_SERVICES"

# jsonschema imports this package if there is one. Its grammars take every pytest process seconds, and are for formats
# ("iri") that are not checked here.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]


def read_services() -> dict[str, Any]:
    path = os.environ.get(SERVICES_VARIABLE)
    if not path:
        raise pytest.UsageError("Tests need the embedded services: run `python3 run.py test`.")
    return json.loads(Path(path).read_text())


def database_url(url: str, name: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


def process_environment(process: str = "") -> dict[str, str]:
    """The environment for a process that a test starts: the portal's settings, with the test's own database. Without
    the name of a process, it has all rights in it.
    """
    url = os.environ["DATABASE_URL"]
    own = database_url(url, f"test_{urlsplit(url).path.lstrip('/')}")
    role = f"?options=-c%20role%3Dportal_{process}" if process else ""
    return {**os.environ, "DATABASE_URL": own + role}


def redis_number() -> int:
    """This process's Redis database. Processes of one run have adjacent numbers; 0 is the portal's own."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    return 1 + (os.getppid() + int(worker.removeprefix("gw")) if worker else os.getpid()) % 15


def _settle_environment() -> None:
    services = read_services()
    os.environ["DJANGO_SETTINGS_MODULE"] = "portal.settings"
    os.environ["SECRET_KEY"] = "a key for tests only"
    os.environ["NOTEBOOK_TOKEN_KEY"] = "a notebook key for tests only"
    pair = PrivateKey(hashlib.sha256(b"a pair of keys for tests only").digest())
    os.environ["SECRETS_PRIVATE_KEY"] = pair.encode(Base64Encoder).decode()
    os.environ["SECRETS_PUBLIC_KEY"] = pair.public_key.encode(Base64Encoder).decode()
    os.environ["SECOND_FACTOR_KEY"] = base64.b64encode(hashlib.sha256(b"a key for tests only").digest()).decode()
    os.environ["DATABASE_URL"] = database_url(services["database_url"], f"portal_{os.getpid()}")
    # Redis databases of other test processes on the same server are not flushed.
    os.environ["REDIS_URL"] = urlunsplit(urlsplit(services["redis_url"])._replace(path=f"/{redis_number()}"))
    os.environ["EMAIL_URL"] = "memorymail://"
    # All tests of a worker count for the same team, team-a. Tests of the limits set their own.
    os.environ["API_REQUESTS_PER_MINUTE"] = "1000000"
    os.environ.setdefault("LOG_LEVEL", "WARNING")
    os.environ.pop("PORTAL_KUBECONFIG", None)


_settle_environment()


def pytest_configure(config: pytest.Config) -> None:
    if os.environ.get(rewording.VARIABLE):
        config.pluginmanager.register(rewording)


if os.environ.get(rewording.VARIABLE):
    rewording.install()


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling | None:
    return Scheduling(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_unconfigure() -> None:
    """Drops the database by force: a stream or a process may have left a connection open."""
    services = read_services()
    with psycopg.connect(database_url(services["database_url"], "postgres"), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS test_portal_{os.getpid()} WITH (FORCE)")
