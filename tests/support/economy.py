"""Saves time that every test would spend again without testing it: file scans, slow hashes, emptying tables."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from django.conf import settings
from django.contrib.auth.hashers import ScryptPasswordHasher
from django.db import OperationalError, connection, transaction
from django.test import TransactionTestCase, override_settings
from django.test.signals import setting_changed
from psycopg.errors import DeadlockDetected
from whitenoise.base import WhiteNoise
from whitenoise.middleware import WhiteNoiseMiddleware

# Left as the migrations made them: `flush` would delete these rows and insert the same rows again.
KEPT = {"django_content_type", "auth_permission"}
ATTEMPTS = 5
# A trigger refuses to delete events. A session in replica mode fires no triggers and checks no foreign keys.
AS_REPLICA = "SET LOCAL session_replication_role = replica"


@contextmanager
def economy() -> Iterator[None]:
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(WhiteNoiseMiddleware, "add_files_from_finders", _add_files_once()))
        stack.enter_context(mock.patch.object(TransactionTestCase, "_fixture_teardown", _empty_tables))
        ours = f"{__name__}.{QuickScrypt.__name__}"
        stack.enter_context(override_settings(PASSWORD_HASHERS=[ours, *settings.PASSWORD_HASHERS[1:]]))
        yield


class QuickScrypt(ScryptPasswordHasher):
    """The portal's own hasher with a cost of 2⁴ instead of 2¹⁴: saves 0.2 s for each hash. Every process can verify
    both.

    The cost is part of the hash; a hash with another cost is replaced when its user signs in.
    """

    work_factor = 2**4


def _add_files_once() -> Any:
    """Scans the files once: each test's client has its own middleware, which scans the same 200 files in 20 ms."""
    found: dict[str, Any] = {}
    look = WhiteNoiseMiddleware.add_files_from_finders

    def forget(*, setting: str, **_: Any) -> None:
        if setting.startswith(("STATIC", "WHITENOISE", "DEBUG")):
            found.clear()

    # The signal would keep only a weak reference: this function has to live as long as the patched method.
    setting_changed.connect(forget, weak=False)

    def add_files(self: WhiteNoise) -> None:
        if not found:
            look(self)
            found.update(self.files)
        self.files.update(found)

    return add_files


def _empty_tables(case: TransactionTestCase) -> None:
    """Keeps the content types and permissions, which a flush would delete and create again.

    A test writes a few of the 64 tables. Deleting their rows and letting VACUUM free the files takes the database 6 ms,
    TRUNCATE of all tables takes 90. The files have to be empty as after TRUNCATE: rows in reused space come back in any
    order. They are not empty where another session still writes or reads with an older snapshot.
    """
    del case
    written = _written_tables()
    if not written:
        return
    tables = [connection.ops.quote_name(name) for name in written]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("; ".join([AS_REPLICA, *(f"DELETE FROM {table}" for table in tables)]))
    with connection.cursor() as cursor:
        cursor.execute(f"VACUUM (INDEX_CLEANUP ON, SKIP_LOCKED) {', '.join(tables)}")
    if _written_tables():
        truncate_tables()


def truncate_tables() -> None:
    """Truncates all tables, since they refer to each other.

    A session that still reads for the test (doors or a page) may hold one table and wait for another. Then PostgreSQL
    ends one of the two, and the rows that are left would reach the next test.
    """
    tables = ", ".join(connection.ops.quote_name(name) for name in _all_tables())
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(f"{AS_REPLICA}; TRUNCATE {tables}")
        except OperationalError as error:
            if attempt == ATTEMPTS or not isinstance(error.__cause__, DeadlockDetected):
                raise
        else:
            return


def _written_tables() -> list[str]:
    """Tables whose file is not empty: they were written since they were last emptied, even if it was rolled back."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT name FROM unnest(%s::text[]) name WHERE pg_relation_size(quote_ident(name)::regclass) > 0",
            [list(_all_tables())],
        )
        return [name for (name,) in cursor.fetchall()]


@functools.cache
def _all_tables() -> tuple[str, ...]:
    found = connection.introspection.django_table_names(only_existing=True, include_views=False)
    return tuple(sorted(set(found) - KEPT))
