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

    TRUNCATE, although DELETE is quicker: rows in places that were used before come back in any order. Whoever still
    reads for the test, doors or a page, may hold one of the tables and wait for another: the database ends one of the
    two then, and what is left to empty would meet the next test.
    """
    del case
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(_statements())
        except OperationalError as error:
            if attempt == ATTEMPTS or not isinstance(error.__cause__, DeadlockDetected):
                raise
        else:
            return


@functools.cache
def _statements() -> str:
    names = sorted(set(connection.introspection.django_table_names(only_existing=True, include_views=False)) - KEPT)
    tables = ", ".join(connection.ops.quote_name(name) for name in names)
    # Events refuse it by a trigger, which a replica does not run.
    return f"SET LOCAL session_replication_role = replica; TRUNCATE {tables}"
