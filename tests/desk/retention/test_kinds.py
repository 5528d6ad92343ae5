"""Every table of the schema has a kind, and `manage.py retention` shows what is stored."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection

from accounts.models import Event, Notice, User
from desk.retention.kinds import ALWAYS, KINDS
from desk.retention.queries import read_stored
from tests.support.database_roles import in_role

ROOT = Path(__file__).parents[3]


@pytest.mark.django_db
def test_every_table_is_in_one_kind() -> None:
    with connection.cursor() as cursor:
        tables = connection.introspection.table_names(cursor)

    assert Counter(table for kind in KINDS for table in kind.tables) == Counter(tables)


@pytest.mark.django_db
def test_columns_of_age_exist_and_have_an_index_where_tables_grow() -> None:
    for kind in KINDS:
        with connection.cursor() as cursor:
            names = {one.name for one in connection.introspection.get_table_description(cursor, kind.tables[0])}
            found = connection.introspection.get_constraints(cursor, kind.tables[0])
        indexes = [one for one in found.values() if one["index"] or one["unique"] or one["primary_key"]]
        firsts = {one["columns"][0] for one in indexes if one["columns"]}
        assert not kind.at or kind.at in names, kind.name
        assert not kind.at or not kind.order or kind.order in firsts, kind.name


def test_what_deletes_is_a_room_that_there_is() -> None:
    for kind in KINDS:
        assert not kind.deleted_by or (ROOT / kind.deleted_by).is_dir(), kind.name
        # Whatever nobody deletes is said to stay.
        assert kind.kept_for is None or (kind.deleted_by and kind.at and ALWAYS not in kind.rule), kind.name


@pytest.mark.django_db
def test_the_command_shows_age_size_and_the_next_deletion(alice: User) -> None:
    event = Event.objects.create(actor="Alice", via="page", verb="a.b", row="r")
    Notice.objects.create(user=alice, event=event, kind="team", at=datetime(2026, 1, 2, 3, 4, tzinfo=UTC), subject="s")
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE accounts_notice")
    told = StringIO()

    with in_role("worker"):
        call_command("retention", stdout=told)

    [line] = [one for one in told.getvalue().splitlines() if one.startswith("notices")]
    assert line.split()[1] == "1"
    assert float(line.split()[2]) > float(line.split()[3]) > 0
    assert "2026-01-02 03:04" in line
    assert "90 d" in line
    assert "2026-04-02 03:04" in line
    assert len(told.getvalue().splitlines()) == len(KINDS) + 2


@pytest.mark.django_db
def test_a_role_that_may_not_read_a_table_shows_no_age(alice: User) -> None:
    with in_role("worker"):
        log = next(one for one in read_stored() if one.kind.name == "admin-log")

    assert log.oldest is None
    assert log.bytes_total > 0
