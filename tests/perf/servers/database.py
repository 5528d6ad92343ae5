"""Django in the benchmark's own process, on its own empty database."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg


@contextmanager
def own_database(name: str, *, database_url: str, redis_url: str) -> Iterator[None]:
    """Creates a migrated database beside the given one and drops it at the end. Only one at a time."""
    name = f"bench_{name}_{os.getpid()}"
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        try:
            _settle(urlunsplit(urlsplit(database_url)._replace(path=f"/{name}")), redis_url)
            yield
        finally:
            _close()
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def database_of(demo: dict[str, Any]) -> Iterator[None]:
    """Uses the database of this benchmark's portal: its worker and its pages see what is written here, and its web
    takes the sessions that are made here.
    """
    _open(demo["database_url"], demo["redis_url"], demo["secret_key"])
    try:
        yield
    finally:
        _close()


def _settle(database_url: str, redis_url: str) -> None:
    from django.core.management import call_command

    _open(database_url, redis_url)
    call_command("migrate", verbosity=0)


def _open(database_url: str, redis_url: str, secret_key: str = "a key for a benchmark only") -> None:
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "portal.settings",
        "SECRET_KEY": secret_key,
        "NOTEBOOK_TOKEN_KEY": "a key for a benchmark only",
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "LOG_LEVEL": "ERROR",
    }
    import django
    from django.db import connections

    django.setup()
    from tests.support.http.sessions import sign_cookies

    sign_cookies()
    # Settings are read once in a process, but a second benchmark and its threads need another database. Connections
    # that were opened before keep theirs.
    settings = connections.settings["default"]
    settings["NAME"] = urlsplit(database_url).path.lstrip("/")
    connections["default"] = connections.create_connection("default")
    connections["default"].settings_dict = {**settings}


def _close() -> None:
    from django.db import connections

    connections.close_all()
