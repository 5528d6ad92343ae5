"""What every connection to PostgreSQL asks for, so that a host that vanished holds nothing for long. Pure.

Without this, PostgreSQL keeps the locks of a host without power or network for two hours, and the host at the other end
waits as long. Each side has to notice by itself: the first values are of this side, the others of the server.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from portal.core.connections.keepalive import COUNT, IDLE_S, INTERVAL_S, SILENCE_MS

OURS = {
    "connect_timeout": 5,
    "keepalives_idle": IDLE_S,
    "keepalives_interval": INTERVAL_S,
    "keepalives_count": COUNT,
    "tcp_user_timeout": SILENCE_MS,
    # Prepared statements: half of PostgreSQL's work for a page is planning the same queries again (ADR 23).
    "server_side_binding": True,
    "prepare_threshold": 3,
}
SERVER = {
    "tcp_keepalives_idle": str(IDLE_S),
    "tcp_keepalives_interval": str(INTERVAL_S),
    "tcp_keepalives_count": str(COUNT),
    "tcp_user_timeout": str(SILENCE_MS),
    # A session that works or waits for a lock reads nothing from its client, and looks only when told to.
    "client_connection_check_interval": "5s",
    # A task, a gateway's request and a page are over by then. Migrations have no such limit (portal/apps.py).
    "statement_timeout": "15s",
    "lock_timeout": "10s",
    # For a process that hangs while its kernel answers. As long as a lease: its worker writes nothing afterwards.
    "idle_in_transaction_session_timeout": "18s",
}


# What `?pooler=` may say.
TRANSACTION = "transaction"


def pooler_of(of_url: Mapping[str, Any]) -> str:
    """Returns "transaction" if a pooler lends each transaction any of its sessions, otherwise an empty text."""
    pooler = str(of_url.get("pooler", ""))
    if pooler not in ("", TRANSACTION):
        raise ValueError(f"pooler={pooler} is not known, only pooler={TRANSACTION}")
    return pooler


def database(of_url: Mapping[str, Any]) -> dict[str, Any]:
    """The entry in DATABASES. `of_url`: what DATABASE_URL says."""
    asked = of_url.get("OPTIONS", {})
    return {
        **of_url,
        "ENGINE": "portal.core.postgresql",
        "CONN_MAX_AGE": 0,
        "ATOMIC_REQUESTS": False,
        # A server-side cursor outside of a transaction belongs to a session.
        "DISABLE_SERVER_SIDE_CURSORS": bool(pooler_of(asked)),
        "OPTIONS": connection_options(asked),
    }


def connection_options(of_url: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a connection. What DATABASE_URL says itself is kept; its `options` come last and win.

    A pooler takes no settings for the server: sessions have those of their user (desk/installation/grants.py). What is
    prepared in one session does not exist in the next.
    """
    own = {name: value for name, value in of_url.items() if name != "pooler"}
    if pooler_of(of_url):
        return {**OURS, "prepare_threshold": None, **own}
    server = " ".join(f"-c {name}={value}" for name, value in SERVER.items())
    return {**OURS, **own, "options": f"{server} {of_url.get('options', '')}".rstrip()}
