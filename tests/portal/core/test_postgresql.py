"""Times from the database are equal to those of Django's own loader."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import psycopg
import pytest
from django.db import DataError, connection

from accounts.models import User
from portal.core.postgresql.base import UtcLoader
from tests.support.rows import make

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("offset", [timedelta(), timedelta(hours=5, minutes=30), -timedelta(hours=8)], ids=str)
@pytest.mark.parametrize("microsecond", [0, 1, 120_000, 999_999])
def test_a_time_is_in_utc_whatever_zone_it_was_written_with(offset: timedelta, microsecond: int) -> None:
    at = datetime(2026, 3, 29, 0, 59, 59, microsecond, tzinfo=timezone(offset))
    person = make.user("Alice")
    User.objects.filter(pk=person.pk).update(last_login=at)

    (found,) = User.objects.values_list("last_login", flat=True)

    assert found == at
    assert found is not None
    assert found.tzinfo is UTC
    with connection.cursor() as cursor:
        cursor.execute("SELECT tstzrange(%s, NULL), ARRAY[%s]::timestamptz[], NULL::timestamptz", [at, at])
        time_range, times, missing = cursor.fetchone()
    assert (time_range.lower, time_range.lower.tzinfo) == (at, UTC)
    assert (times, missing) == ([at], None)


@pytest.mark.parametrize("text", ["0001-01-01 00:00:00+00", "9999-12-31 23:59:59.999999+00"])
def test_the_first_and_the_last_time_are_read(text: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::timestamptz", [text])
        assert cursor.fetchone() == (datetime.fromisoformat(text),)


@pytest.mark.parametrize("text", ["infinity", "0044-03-15 12:00:00+00 BC", "10000-01-01 00:00:00+00"])
def test_a_time_that_python_cannot_hold_is_an_error_of_the_database(text: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::timestamptz", [text])
        with pytest.raises((DataError, psycopg.DataError)):
            cursor.fetchone()


def test_no_cursor_registers_another_loader() -> None:
    with connection.cursor() as cursor:
        loader = cursor.adapters.get_loader(psycopg.adapters.types["timestamptz"].oid, psycopg.pq.Format.TEXT)
    assert loader is UtcLoader


def test_a_server_side_cursor_reads_the_same() -> None:
    at = datetime(2026, 3, 29, tzinfo=UTC)
    make.user("Alice")
    User.objects.update(last_login=at)
    assert [one.last_login for one in User.objects.iterator(chunk_size=1)] == [at]
