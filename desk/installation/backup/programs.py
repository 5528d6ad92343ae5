"""pg_dump and pg_restore, with the connection of this process. The password is in their environment, not in their
arguments, which other users of the machine can read.
"""

from __future__ import annotations

import os
import subprocess

from django.db import connection

from portal.core.sql import WITHOUT_POOLER, has_own_session

# Parameters of a connection that libpq also reads from the environment.
_VARIABLES = {
    "host": "PGHOST",
    "port": "PGPORT",
    "user": "PGUSER",
    "dbname": "PGDATABASE",
    "sslmode": "PGSSLMODE",
    "sslrootcert": "PGSSLROOTCERT",
    "sslcert": "PGSSLCERT",
    "sslkey": "PGSSLKEY",
}
_LINES_SHOWN = 5


class ProgramFailed(Exception):
    """The message is a sentence for operators."""


def run(program: str, *arguments: str) -> str:
    """Returns its standard output. Raises ProgramFailed, also if it is not installed."""
    if not has_own_session():
        raise ProgramFailed(f"{program} needs a session of its own. {WITHOUT_POOLER}")
    try:
        done = subprocess.run([program, *arguments], env=_environment(), capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        text = f"{program} is not installed here. Install the client programs of PostgreSQL {server_version()} or newer"
        raise ProgramFailed(f"{text}, for example the package postgresql-client.") from error
    if done.returncode:
        told = " ".join(done.stderr.strip().splitlines()[-_LINES_SHOWN:])
        raise ProgramFailed(f"{program} failed: {told}")
    return done.stdout


def server_version() -> int:
    """Major version of the server."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('server_version_num')::int / 10000")
        return int(cursor.fetchone()[0])


def _environment() -> dict[str, str]:
    connection.ensure_connection()
    info = connection.connection.info
    found = info.get_parameters()
    known = {variable: found[name] for name, variable in _VARIABLES.items() if found.get(name)}
    return {**os.environ, **known, "PGPASSWORD": info.password or ""}
