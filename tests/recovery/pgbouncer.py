"""PgBouncer in transaction mode in front of a portal's PostgreSQL, with fewer sessions than clients."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from devcluster.processes.ports import free_port
from devcluster.processes.supervisor import Command
from tests.recovery.started import Servers

PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
# Of each user.
SESSIONS = 2
# As docs/operators.md tells operators to. PgBouncer asks PostgreSQL for what it knows of a user.
LOOKUP = """
CREATE ROLE pgbouncer LOGIN PASSWORD {password};
CREATE FUNCTION pgbouncer_lookup(name) RETURNS TABLE (name name, password text) LANGUAGE sql SECURITY DEFINER
    SET search_path = pg_catalog AS 'SELECT rolname, rolpassword FROM pg_authid
        WHERE rolcanlogin AND NOT rolsuper AND rolname = $1';
REVOKE ALL ON FUNCTION pgbouncer_lookup FROM PUBLIC;
GRANT EXECUTE ON FUNCTION pgbouncer_lookup TO pgbouncer"""
CONFIGURATION = """
[databases]
portal = host=127.0.0.1 port={postgres} dbname=portal
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {users}
auth_user = pgbouncer
auth_query = SELECT * FROM pgbouncer_lookup($1)
pool_mode = transaction
default_pool_size = {sessions}
max_client_conn = 200
tcp_keepalive = 1
tcp_keepidle = 10
tcp_keepintvl = 3
tcp_keepcnt = 3
tcp_user_timeout = 15000
"""


def start(servers: Servers) -> int:
    """Returns its port."""
    password = secrets.token_urlsafe(16)
    with psycopg.connect(servers.database_url, autocommit=True) as owner:
        owner.execute(sql.SQL(LOOKUP).format(password=sql.Literal(password)))
    port = free_port({servers.port})
    # Where the user of PostgreSQL can read: PgBouncer refuses to run as root, too.
    folder = servers.data.parent / "pgbouncer"
    folder.mkdir()
    users, path = folder / "users", folder / "pgbouncer.ini"
    users.write_text(f'"pgbouncer" "{password}"\n')
    path.write_text(CONFIGURATION.format(postgres=servers.port, port=port, users=users, sessions=SESSIONS))

    def ready() -> bool:
        return socket.create_connection(("127.0.0.1", port), 1).close() is None

    servers.supervisor.start(Command("pgbouncer", [*servers.prefix, PROGRAM, path], ready=ready))
    servers.supervisor.until_ready("pgbouncer")
    return port


def url_of(servers: Servers, process: str, *, port: int = 0) -> str:
    """DATABASE_URL of a process with a user of its own, through the pooler if its port is given."""
    parts = urlsplit(servers.database_url)
    found = parts._replace(netloc=f"portal_{process}_1:{process}%2Fpassword@127.0.0.1:{port or servers.port}")
    return found._replace(query="pooler=transaction" if port else "").geturl()
