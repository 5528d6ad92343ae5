"""The shortcuts of tests/support/economy.py keep tests correct."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from django.db import connection
from django.test import TransactionTestCase
from psycopg.errors import DeadlockDetected

from accounts.models import Event, User
from tests.plugin import process_environment
from tests.support.economy import _empty_tables
from tests.support.rows import make
from tests.support.waiting import wait_until

WAITS = "SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = %s"


@pytest.mark.django_db(transaction=True)
def test_tables_are_emptied_although_somebody_still_reads() -> None:
    make.user("Alice")
    url = process_environment()["DATABASE_URL"]

    with ThreadPoolExecutor(1) as thread, psycopg.connect(url) as reader, psycopg.connect(url, autocommit=True) as seen:
        reader.execute("SET deadlock_timeout = '20s'")  # a process that still reads is terminated
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")  # its snapshot could still see deleted rows
        reader.execute("SELECT FROM workloads_workload")
        empties = thread.submit(lambda: connection.cursor().execute("SELECT pg_backend_pid()").fetchone()[0]).result()
        emptied = thread.submit(_empty_tables, TransactionTestCase())
        wait_until(lambda: seen.execute(WAITS, [empties]).fetchone() == (1,), what="what empties waits for the reader")
        with contextlib.suppress(DeadlockDetected):
            reader.execute("SELECT FROM accounts_user")
        reader.rollback()
        emptied.result()
        thread.submit(lambda: connection.close()).result()

    assert not User.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_tables_are_as_if_nothing_had_been_in_them() -> None:
    make.user("Alice")
    Event.objects.create(via="page", verb="one", row="user:1")

    _empty_tables(TransactionTestCase())

    assert not User.objects.exists()
    assert not Event.objects.exists()  # events, whose trigger refuses deletion
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_relation_size('accounts_user') + pg_relation_size('accounts_event')")
        assert cursor.fetchone() == (0,)
