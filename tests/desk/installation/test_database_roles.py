"""`manage.py database_roles`: rights and logins, given twice without effect, replaced while both passwords work."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from desk.installation import grants
from desk.installation.rights import ROLES
from portal.core.postgresql.session import SERVER
from tests.plugin import process_environment

pytestmark = pytest.mark.django_db(transaction=True)
GRANTED = """
SELECT relname, relacl::text, (SELECT array_agg(attname || attacl::text ORDER BY attnum) FROM pg_attribute
                                WHERE attrelid = pg_class.oid AND attacl IS NOT NULL)
  FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace ORDER BY 1"""


@pytest.fixture
def names(unique: str) -> Iterator[tuple[str, str]]:
    """Of two logins, which are the server's: other tests know nothing of them."""
    found = f"first_{unique}", f"second_{unique}"
    yield found
    with connection.cursor() as cursor:
        for name in found:
            cursor.execute(f"DROP ROLE IF EXISTS {name}")


def url_of(name: str, password: str) -> str:
    parts = urlsplit(process_environment()["DATABASE_URL"])
    return parts._replace(netloc=f"{name}:{password}@{parts.netloc.rpartition('@')[2]}").geturl()


def give(folder: Path, url: str, *options: str, process: str = "beat") -> str:
    file = folder / "url"
    file.write_text(url)
    told = StringIO()
    call_command("database_roles", f"{process}={file}", *options, stdout=told)
    return told.getvalue()


def granted() -> list[object]:
    with connection.cursor() as cursor:
        cursor.execute(GRANTED)
        return list(cursor.fetchall())


def test_rights_are_the_same_after_a_second_time_and_others_are_taken_away() -> None:
    before = granted()
    with connection.cursor() as cursor:
        cursor.execute("GRANT SELECT ON workloads_teamsecret TO portal_web, portal_beat")
        cursor.execute("GRANT UPDATE (spec) ON workloads_run TO portal_web")
    assert granted() != before

    call_command("database_roles", stdout=StringIO())

    assert granted() == before


def test_a_login_has_the_rights_of_its_process_only(tmp_path: Path, names: tuple[str, str]) -> None:
    give(tmp_path, url_of(names[0], "a password"))

    with psycopg.connect(url_of(names[0], "a%20password")) as beat:
        beat.execute("SELECT due_at FROM workloads_workload")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            beat.execute("SELECT * FROM accounts_user")


def test_a_login_has_the_limits_of_its_sessions(tmp_path: Path, names: tuple[str, str]) -> None:
    """A pooler opens its sessions, and asks for none."""
    give(tmp_path, url_of(names[0], "a"))

    with psycopg.connect(url_of(names[0], "a")) as beat:
        rows = beat.execute("SELECT name, source FROM pg_settings WHERE name = ANY(%s)", [list(SERVER)]).fetchall()
        limit = beat.execute("SELECT current_setting('statement_timeout')").fetchone()
    assert dict(rows) == dict.fromkeys(SERVER, "user")
    assert limit == (SERVER["statement_timeout"],)


def test_a_password_is_replaced_and_nobody_is_locked_out(tmp_path: Path, names: tuple[str, str]) -> None:
    old, new = url_of(names[0], "old"), url_of(names[1], "new")
    give(tmp_path, old)
    with psycopg.connect(old, autocommit=True) as running:
        give(tmp_path, new)
        running.execute("SELECT due_at FROM workloads_workload")
        psycopg.connect(old).close()
        psycopg.connect(new).close()

        give(tmp_path, new, "--retire", names[0])

        with pytest.raises(psycopg.OperationalError):
            running.execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(old)
    psycopg.connect(new).close()


def test_a_login_in_use_and_a_foreign_one_are_not_removed(tmp_path: Path, names: tuple[str, str]) -> None:
    url = url_of(names[0], "a")
    for name in (names[0], grants.owner(), "nobody"):
        with pytest.raises(CommandError, match=name):
            give(tmp_path, url, "--retire", name)
    psycopg.connect(url).close()


def test_an_installation_with_one_role_goes_on(tmp_path: Path) -> None:
    told = give(tmp_path, process_environment()["DATABASE_URL"], process="web")

    assert f"web has all rights: its DATABASE_URL has the owner's user {grants.owner()}." in told


def test_an_owner_who_may_not_create_roles_is_told_what_to_do(
    tmp_path: Path, names: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grants, "missing_roles", lambda: list(ROLES.values()))
    monkeypatch.setattr(grants, "may_create_roles", lambda: False)

    assert "Every process has all rights." in give(tmp_path, process_environment()["DATABASE_URL"])
    with pytest.raises(CommandError, match="CREATE ROLE portal_web;"):
        give(tmp_path, url_of(names[0], "a"))


@pytest.mark.parametrize("argument", ["web", "nobody=url", "web=/nowhere"])
def test_a_wrong_argument_is_named(argument: str) -> None:
    with pytest.raises(CommandError, match=argument.split("=")[-1]):
        call_command("database_roles", argument, stdout=StringIO())
