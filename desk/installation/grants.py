"""Writes the rights of `rights.py` into PostgreSQL, and gives processes their logins. The connection is the owner's.

A login is a role with a password, and a member of the role of its process. So a process can have two logins for as long
as its password is being replaced.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from django.db import connection, transaction
from psycopg.sql import SQL, Composable, Identifier, Literal

from desk.installation.rights import RIGHTS, ROLES
from portal.core.postgresql.session import SERVER

_CREATE = SQL("""
DO $$ BEGIN CREATE ROLE {role} NOLOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$""")


@dataclass(frozen=True)
class Login:
    """What the DATABASE_URL of a process says."""

    process: str
    name: str
    password: str

    @classmethod
    def of_url(cls, process: str, url: str) -> Login:
        parts = urlsplit(url)
        return cls(process, unquote(parts.username or ""), unquote(parts.password or ""))


def owner() -> str:
    return str(_rows(SQL("SELECT current_user"))[0][0])


def may_create_roles() -> bool:
    return bool(_rows(SQL("SELECT rolcreaterole OR rolsuper FROM pg_roles WHERE rolname = current_user"))[0][0])


def missing_roles() -> list[str]:
    known = {name for (name,) in _rows(SQL("SELECT rolname FROM pg_roles"))}
    return [role for role in ROLES.values() if role not in known]


def create_roles() -> None:
    """Roles belong to the server: another database may have made them, maybe at this moment."""
    for role in missing_roles():
        _execute(_CREATE.format(role=Identifier(role)))


@transaction.atomic
def grant_rights() -> None:
    """The roles then have exactly these rights, on all tables of the schema. Processes that run notice nothing: their
    statements see the rights of before, or those of after.
    """
    schema = Identifier(str(_rows(SQL("SELECT current_schema()"))[0][0]))
    # One at a time: two that change the rights of the same table disturb one another.
    _execute(SQL("SELECT pg_advisory_xact_lock(hashtext('portal.rights'))"))
    for role in map(Identifier, ROLES.values()):
        _execute(SQL("REVOKE ALL ON ALL TABLES IN SCHEMA {} FROM {}").format(schema, role))
        _execute(SQL("GRANT USAGE ON SCHEMA {} TO {}").format(schema, role))
    for table, rights in RIGHTS.items():
        for process, privileges in rights.items():
            role = Identifier(ROLES[process])
            # The privileges are constants of rights.py.
            granted = SQL(privileges)
            _execute(SQL("GRANT {} ON {} TO {}").format(granted, Identifier(table), role))


@transaction.atomic
def give_login(login: Login) -> None:
    """Creates the login, or sets its password. Its connections that are open stay open."""
    name, role = Identifier(login.name), Identifier(ROLES[login.process])
    if not _rows(SQL("SELECT 1 FROM pg_roles WHERE rolname = {}").format(Literal(login.name))):
        _execute(SQL("CREATE ROLE {}").format(name))
    _execute(SQL("ALTER ROLE {} LOGIN PASSWORD {}").format(name, Literal(_hashed(login))))
    _execute(SQL("GRANT {} TO {}").format(role, name))
    # For sessions that a pooler opens. Others ask for the same themselves.
    for setting, value in SERVER.items():
        _execute(SQL("ALTER ROLE {} SET {} = {}").format(name, Identifier(setting), Literal(value)))


@transaction.atomic
def retire_login(name: str) -> bool:
    """Removes a login and ends its connections. False if it is none of ours: logins belong to the server, which may
    have others.
    """
    ours = SQL("""
        SELECT 1 FROM pg_auth_members
          JOIN pg_roles member ON member.oid = pg_auth_members.member
          JOIN pg_roles role ON role.oid = pg_auth_members.roleid
         WHERE member.rolname = {} AND member.rolcanlogin AND NOT member.rolsuper AND member.rolname <> current_user
           AND role.rolname IN ({})""")
    roles = SQL(", ").join(map(Literal, ROLES.values()))
    if not _rows(ours.format(Literal(name), roles)):
        return False
    _execute(SQL("ALTER ROLE {} NOLOGIN").format(Identifier(name)))
    _execute(SQL("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = {}").format(Literal(name)))
    _execute(SQL("DROP ROLE {}").format(Identifier(name)))
    return True


def _hashed(login: Login) -> str:
    """As PostgreSQL stores it, so that no log of statements has the password."""
    connection.ensure_connection()
    raw = connection.connection.pgconn
    return bytes(raw.encrypt_password(login.password.encode(), login.name.encode(), b"scram-sha-256")).decode()


def _rows(statement: Composable) -> list[tuple[object, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall())


def _execute(statement: Composable) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)
