"""Times come from the database as Django's own loader would give them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from django.db import connection
from psycopg.pq import Format

from accounts.models import User
from tests.support.rows import make

pytestmark = pytest.mark.django_db
TIMESTAMPTZ = 1184


@pytest.mark.parametrize("offset", [timedelta(), timedelta(hours=5, minutes=30), -timedelta(hours=8)], ids=str)
def test_a_time_is_in_utc_whatever_it_was_sent_as(offset: timedelta) -> None:
    at = datetime(2026, 3, 29, 0, 59, 59, 999999, tzinfo=timezone(offset))
    person = make.user("Alice")
    User.objects.filter(pk=person.pk).update(last_login=at)

    (found,) = User.objects.values_list("last_login", flat=True)

    assert found == at
    assert found is not None
    assert found.tzinfo is UTC
    with connection.cursor() as cursor:
        cursor.execute("SELECT tstzrange(%s, NULL), ARRAY[%s]::timestamptz[], NULL::timestamptz", [at, at])
        assert cursor.fetchone()[1:] == ([at], None)


def test_the_loader_is_psycopgs_own_in_c() -> None:
    connection.ensure_connection()
    loader = connection.connection.adapters.get_loader(TIMESTAMPTZ, Format.TEXT)
    assert loader.__module__ == "psycopg_binary._psycopg"


def test_a_cursor_of_the_server_reads_the_same() -> None:
    at = datetime(2026, 3, 29, tzinfo=UTC)
    make.user("Alice")
    User.objects.update(last_login=at)
    assert [one.last_login for one in User.objects.iterator(chunk_size=1)] == [at]
