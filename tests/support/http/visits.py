"""For tables of every person × every interface: reads whole tables in one statement and signs each person in once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.cookies import SimpleCookie

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Model
from django.test import Client

from accounts.models import User
from tests.support.rows import make

_kept: dict[int, tuple[Client, str]] = {}


def rows_of(*models: type[Model]) -> str:
    """Returns every row with all its columns, as PostgreSQL writes them: for comparison, not for reading."""
    quote = connection.ops.quote_name
    keys = {model: ", ".join(f"one.{quote(field.column)}" for field in model._meta.pk_fields) for model in models}
    tables = ", ".join(
        f"(SELECT json_agg(one ORDER BY {keys[model]}) FROM {quote(model._meta.db_table)} one)" for model in models
    )
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT json_build_array({tables})::text")
        return str(cursor.fetchone()[0])


@contextmanager
def undone() -> Iterator[None]:
    """Rolls back everything that is written inside."""
    with transaction.atomic():
        try:
            yield
        finally:
            transaction.set_rollback(True)


@contextmanager
def signed_in_once(people: Iterable[User]) -> Iterator[None]:
    """Signs everybody in once, with a second factor, since that takes longer than most requests. Inside, `visit`
    reuses these sessions.
    """
    for who in people:
        client = Client()
        make.administrator(client, who)
        _kept[who.pk] = client, client.cookies[settings.SESSION_COOKIE_NAME].value
    try:
        yield
    finally:
        _kept.clear()


def visit(who: User | None) -> Client:
    """Returns a client as a new browser: it keeps the session cookie and no other cookie."""
    if who is None:
        return Client()
    client, session = _kept[who.pk]
    client.cookies = SimpleCookie({settings.SESSION_COOKIE_NAME: session})
    return client
