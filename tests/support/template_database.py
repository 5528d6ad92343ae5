"""One process of a run applies the migrations; every other one copies the result in 0.2 s instead of seven.

The template belongs to the services and is kept as long as they are. Its name holds a digest of everything that
determines an empty database, so that `test --reuse` makes a new one after a new migration.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from psycopg.sql import SQL, Identifier

from tests.plugin import database_url

ROOT = Path(__file__).parents[2]
PREFIX = "test_template_"
APPS = ("accounts", "catalog", "cluster", "desk", "operations", "portal", "tenants", "usage", "workloads")
# Content types and permissions come from the models themselves.
DECIDES = ("models.py", "models/*.py", "migrations/*.py", "apps.py", "rights.py")
# An arbitrary number: only the holder of this lock may make or copy the template, which then may have no other
# connection.
LOCK = 7_406_112


def create_database(url: str) -> None:
    """Creates this process's database, migrated; `url` is that of the server's own database."""
    name = f"test_{settings.DATABASES['default']['NAME']}"
    template = f"{PREFIX}{digest(deciding_files(), url)}"
    with _server(url) as server:
        is_made = server.execute("SELECT FROM pg_database WHERE datname = %s", [template]).fetchone()
        _copy(server, template if is_made else "template1", name)
        connection.close()
        settings.DATABASES["default"]["NAME"] = connection.settings_dict["NAME"] = name
        if is_made:
            return
        call_command("migrate", verbosity=0, interactive=False, run_syncdb=True)
        call_command("createcachetable")
        call_command("database_roles", stdout=StringIO())
        connection.close()
        _forget_older(server)
        _copy(server, name, template)


def deciding_files() -> list[Path]:
    """The files that determine an empty database."""
    found = {path for app in APPS for pattern in DECIDES for path in (ROOT / app).rglob(pattern)}
    return sorted(found | {ROOT / "portal" / "settings.py", *(ROOT / "requirements").iterdir()})


def digest(files: Iterable[Path], url: str) -> str:
    """The port is part of the digest: other services may be other servers."""
    found = hashlib.sha256(str(urlsplit(url).port).encode())
    for path in files:
        found.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()[:16]


@contextmanager
def _server(url: str) -> Iterator[psycopg.Connection]:
    """The advisory lock ends with the connection, even if its process dies."""
    with psycopg.connect(database_url(url, "postgres"), autocommit=True) as server:
        server.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        yield server


def _copy(server: psycopg.Connection, source: str, name: str) -> None:
    server.execute(SQL("CREATE DATABASE {} TEMPLATE {}").format(Identifier(name), Identifier(source)))


def _forget_older(server: psycopg.Connection) -> None:
    known = server.execute("SELECT datname FROM pg_database WHERE starts_with(datname, %s)", [PREFIX]).fetchall()
    for (name,) in known:
        server.execute(SQL("DROP DATABASE {}").format(Identifier(name)))
