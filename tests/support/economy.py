"""What every test would pay for anew and none looks at: scans of files, slow hashes, empty tables."""

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

# As migrations left them: what `flush` empties and fills again with the same rows.
KEPT = {"django_content_type", "auth_permission"}
ATTEMPTS = 5
# Events refuse to be deleted by a trigger, which a replica does not run; nor does it look at foreign keys.
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
    """The portal's own hasher with a factor of 2⁴ in place of 2¹⁴: 0.2 s less each. Every process verifies its hashes.

    The factor is part of the hash, and what was hashed with another one is hashed anew when somebody signs in.
    """

    work_factor = 2**4


def _add_files_once() -> Any:
    """Each test's client has its own middleware, which looks at the same 200 files: 20 ms."""
    found: dict[str, Any] = {}
    look = WhiteNoiseMiddleware.add_files_from_finders

    def forget(*, setting: str, **_: Any) -> None:
        if setting.startswith(("STATIC", "WHITENOISE", "DEBUG")):
            found.clear()

    # A weak reference is kept by the signal alone: this one lives as long as the patched method.
    setting_changed.connect(forget, weak=False)

    def add_files(self: WhiteNoise) -> None:
        if not found:
            look(self)
            found.update(self.files)
        self.files.update(found)

    return add_files


def _empty_tables(case: TransactionTestCase) -> None:
    """Without the content types and permissions that a flush would take away and make again.

    A test writes a few of the 64 tables: to delete their rows and let VACUUM give the files back takes the database
    6 ms, and TRUNCATE of all 90. The files have to be empty as after TRUNCATE: rows in places that were used before
    come back in any order. They are not where somebody still writes, or reads with a snapshot from before.
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
    """All of them, since they refer to each other.

    Whoever still reads for the test, doors or a page, may hold one of the tables and wait for another: the database
    ends one of the two then, and what is left to empty would meet the next test.
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
    """Those whose file is not empty: something was written since it was, even if it was rolled back."""
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
