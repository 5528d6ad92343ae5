"""The statements of a verb, sent again without the verb: what PostgreSQL alone needs for the same work.

The verb runs once in a transaction that is rolled back, while its statements are noted with their parameters in them.
Sequences are set back, so that the rows of the second time get the numbers that later statements name. Then the same
text is sent over one connection, in one transaction, and its answers are fetched.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

SEQUENCES = "SELECT quote_ident(schemaname) || '.' || quote_ident(sequencename), last_value FROM pg_sequences"


class _Undone(Exception):
    pass


def statements_of(verb: Callable[[], None]) -> list[str]:
    """The statements of `verb`, without those of transactions and savepoints; what it wrote is undone."""
    from django.db import connection, transaction

    noted: list[str] = []
    before = _sequences()
    try:
        with transaction.atomic():
            writer = psycopg.ClientCursor(connection.connection)

            def note(execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
                assert not many, "no statement with several rows of parameters is expected"
                noted.append(writer.mogrify(sql, params))
                return execute(sql, params, many, context)

            with connection.execute_wrapper(note):
                verb()
            raise _Undone
    except _Undone:
        pass
    with connection.cursor() as cursor:
        for name, value in before.items():
            cursor.execute("SELECT setval(%s, %s, %s)", [name, value or 1, value is not None])
    return [one for one in noted if not one.startswith(("SAVEPOINT", "RELEASE"))]


def _sequences() -> dict[str, int | None]:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(SEQUENCES)
        return dict(cursor.fetchall())


@contextmanager
def sender(database_url: str) -> Iterator[Callable[[list[str]], float]]:
    """Sends statements in one transaction of a connection of its own; returns seconds."""
    with psycopg.connect(database_url, autocommit=True, cursor_factory=psycopg.ClientCursor) as connection:

        def send(statements: list[str]) -> float:
            began = time.perf_counter()
            with connection.transaction(), connection.cursor() as cursor:
                for one in statements:
                    cursor.execute(one)
                    if cursor.description:
                        cursor.fetchall()
            return time.perf_counter() - began

        yield send
