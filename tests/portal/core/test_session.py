"""What each connection asks of PostgreSQL, read back from the server, and of this side's kernel."""

from __future__ import annotations

import socket

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection

from portal.core.postgresql.session import OURS, SERVER, SILENCE_MS, connection_options, pooler_of
from tests.support.threads import in_threads

pytestmark = pytest.mark.django_db


def setting(name: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting(%s)", [name])
        return str(cursor.fetchone()[0])


def seconds(name: str) -> float:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT extract(epoch FROM (setting || unit)::interval) FROM pg_settings WHERE name = %s", [name]
        )
        return float(cursor.fetchone()[0])


def test_the_server_notices_a_vanished_client_within_30_s() -> None:
    """At the latest it notices by keepalives, and then at its next look at the connection."""
    assert set(SERVER) > {"tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_keepalives_count", "tcp_user_timeout"}
    silent = seconds("tcp_keepalives_idle") + seconds("tcp_keepalives_interval") * int(setting("tcp_keepalives_count"))
    checked = seconds("client_connection_check_interval")
    assert silent + checked < 30
    assert seconds("tcp_user_timeout") + seconds("tcp_keepalives_interval") + checked < 30
    assert min(silent, checked, seconds("tcp_user_timeout")) > 0


def test_no_wait_is_longer_than_what_waits_for_it() -> None:
    assert 0 < seconds("lock_timeout") < seconds("statement_timeout") <= settings.TASK_LIMIT_S
    assert 0 < seconds("idle_in_transaction_session_timeout") <= settings.LEASE_S


def test_this_side_notices_a_vanished_server() -> None:
    connection.ensure_connection()
    with socket.socket(fileno=socket.dup(connection.connection.fileno())) as ours:
        assert ours.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == OURS["keepalives_idle"]
        assert ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL) == OURS["keepalives_interval"]
        assert ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT) == OURS["keepalives_count"]
        assert ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == SILENCE_MS


def test_an_address_may_say_otherwise() -> None:
    found = connection_options({"keepalives_idle": "60", "sslmode": "require", "options": "-c lock_timeout=3s"})
    assert (found["keepalives_idle"], found["sslmode"]) == ("60", "require")
    assert found["tcp_user_timeout"] == SILENCE_MS
    # PostgreSQL takes the last of two.
    assert found["options"].startswith("-c tcp_keepalives_idle=")
    assert found["options"].endswith(" -c lock_timeout=3s")


def test_through_a_pooler_nothing_belongs_to_a_session() -> None:
    """The settings of SERVER are those of the user then: tests/desk/installation/test_database_roles.py."""
    found = connection_options({"pooler": "transaction", "sslmode": "require"})
    assert "pooler" not in found
    assert "options" not in found
    assert found["prepare_threshold"] is None
    assert (found["sslmode"], found["tcp_user_timeout"]) == ("require", SILENCE_MS)
    with pytest.raises(ValueError, match="pooler=session"):
        pooler_of({"pooler": "session"})


@pytest.mark.django_db(transaction=True)
def test_a_migration_may_take_long_but_not_wait_for_a_lock() -> None:
    found: list[float] = []

    def in_another_session() -> None:
        call_command("migrate", verbosity=0)
        found.extend(map(seconds, ("statement_timeout", "idle_in_transaction_session_timeout", "lock_timeout")))

    in_threads(1, in_another_session)
    assert found[:2] == [0, 0]
    assert found[2] > 0
